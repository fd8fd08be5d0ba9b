#include "src/data/kafka/client_properties.h"

#include <array>
#include <string>

#include "satrap/core/error.h"

namespace satrap::data {
namespace {

rd_kafka_conf_res_t set(rd_kafka_conf_t& properties,
                        const std::string& name,
                        const std::string& value,
                        bool may_be_unknown = false) {
  std::array<char, 512> why{};
  const rd_kafka_conf_res_t result =
      rd_kafka_conf_set(&properties, name.c_str(), value.c_str(), why.data(), why.size());
  if (result == RD_KAFKA_CONF_OK) return result;
  if (result == RD_KAFKA_CONF_UNKNOWN && may_be_unknown) return result;
  // Not what librdkafka says about the value, which may be a secret.
  throw Error(
      ErrorCode::kInvalidConfig,
      concat("data.kafka.properties: librdkafka ",
             result == RD_KAFKA_CONF_UNKNOWN ? "has no property '" : "refuses the value of '", name,
             "' (https://github.com/confluentinc/librdkafka, CONFIGURATION.md)"));
}

}  // namespace

ClientProperties client_properties(const KafkaSettings& settings) {
  ClientProperties result{.properties = Properties(rd_kafka_conf_new())};
  rd_kafka_conf_t& properties = *result.properties;
  set(properties, "bootstrap.servers", settings.brokers);
  set(properties, "group.id", settings.group.empty() ? "satrap" : settings.group);
  set(properties, "enable.auto.commit", "false");
  set(properties, "enable.auto.offset.store", "false");
  set(properties, "enable.partition.eof", "true");
  set(properties, "auto.offset.reset", "error");
  set(properties, "allow.auto.create.topics", "false");
  set(properties, "client.id", "satrap");
  // A commit waits so long for the group's coordinator, and so does the end of the client after
  // it. There is no session: no group is joined.
  set(properties, "session.timeout.ms", "4000");
  // Each partition is several turns ahead, and memory is bounded though there may be many.
  set(properties, "queued.min.messages", concat(kQueuedMessages));
  set(properties, "queued.max.messages.kbytes", "16384");
  // A full queue is looked at again after this time; a second would starve a fast trainer.
  result.looks_at_queues =
      set(properties, "fetch.queue.backoff.ms", concat(kLookMs), true) == RD_KAFKA_CONF_OK;
  for (const auto& [name, value] : settings.properties) set(properties, name, value);
  return result;
}

}  // namespace satrap::data
