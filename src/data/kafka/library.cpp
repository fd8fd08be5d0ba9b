#include <memory>
#include <string>

#include <librdkafka/rdkafka.h>

#include "src/data/kafka/consumer.h"
#include "src/data/topic/kafka.h"

namespace satrap::data {
namespace {

class RdkafkaLibrary : public KafkaLibrary {
 public:
  std::string describe() const override {
    return std::string("librdkafka ") + rd_kafka_version_str();
  }
  std::unique_ptr<KafkaConsumer> open(const KafkaSettings& settings) const override {
    return open_consumer(settings);
  }
};

}  // namespace
}  // namespace satrap::data

extern "C" const satrap::data::KafkaLibrary* satrap_kafka();
const satrap::data::KafkaLibrary* satrap_kafka() {
  static const satrap::data::RdkafkaLibrary library;
  return &library;
}
