#pragma once

#include <memory>

#include <librdkafka/rdkafka.h>

namespace satrap::data {

// Owners of what librdkafka hands out.

template <auto Destroy>
struct Destroyer {
  void operator()(auto* object) const { Destroy(object); }
};
using Client = std::unique_ptr<rd_kafka_t, Destroyer<rd_kafka_destroy>>;
using Queue = std::unique_ptr<rd_kafka_queue_t, Destroyer<rd_kafka_queue_destroy>>;
using TopicHandle = std::unique_ptr<rd_kafka_topic_t, Destroyer<rd_kafka_topic_destroy>>;
using PartitionList = std::unique_ptr<rd_kafka_topic_partition_list_t,
                                      Destroyer<rd_kafka_topic_partition_list_destroy>>;
using Properties = std::unique_ptr<rd_kafka_conf_t, Destroyer<rd_kafka_conf_destroy>>;
using Event = std::unique_ptr<rd_kafka_event_t, Destroyer<rd_kafka_event_destroy>>;
using Metadata = std::unique_ptr<const rd_kafka_metadata_t, Destroyer<rd_kafka_metadata_destroy>>;

}  // namespace satrap::data
