#pragma once

#include <cstdint>

#include "src/data/kafka/handles.h"
#include "src/data/topic/kafka.h"

namespace satrap::data {

/// How many messages of a partition librdkafka holds before it fetches no more, and after how long
/// it looks again at a queue that was full.
inline constexpr std::int64_t kQueuedMessages = 20'000;
inline constexpr int kLookMs = 20;

/// How a client of librdkafka is set: as satrap needs it, then as the user says.
struct ClientProperties {
  Properties properties;
  bool looks_at_queues = false;  // after kLookMs, which librdkafka knows from 2.3 on
};

/// Throws Error(kInvalidConfig) for a property that librdkafka does not know, or whose value it
/// refuses.
ClientProperties client_properties(const KafkaSettings& settings);

}  // namespace satrap::data
