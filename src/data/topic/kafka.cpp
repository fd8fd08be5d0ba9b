#include "src/data/topic/kafka.h"

#include "satrap/core/loaded_library.h"
#include "satrap/data/kafka_support.h"

namespace satrap::data {

const KafkaLibrary& kafka_library() {
  static const KafkaLibrary& opened = *reinterpret_cast<const KafkaLibrary* (*)()>(
      open_library({"libsatrap_kafka.so", "satrap_kafka", "topics of Kafka",
                    "satrap's packages have it in lib/ beside bin/; for a build of your own run "
                    "./launch/setup.sh kafka, configure and build again"}))();
  return opened;
}

std::string describe_kafka() { return kafka_library().describe(); }

}  // namespace satrap::data
