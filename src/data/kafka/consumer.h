#pragma once

#include <memory>

#include "src/data/topic/kafka.h"

namespace satrap::data {

std::unique_ptr<KafkaConsumer> open_consumer(const KafkaSettings& settings);

}  // namespace satrap::data
