#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

namespace satrap::data {

/// A broker in threads of this process, and a producer for it.
class MockBroker {
 public:
  MockBroker() : owner_(open({})), cluster_(rd_kafka_mock_cluster_new(owner_, 1)) {
    producer_ = open(brokers());
  }
  ~MockBroker() {
    rd_kafka_destroy(producer_);
    rd_kafka_mock_cluster_destroy(cluster_);
    rd_kafka_destroy(owner_);
  }
  MockBroker(const MockBroker&) = delete;
  MockBroker& operator=(const MockBroker&) = delete;

  std::string brokers() const { return rd_kafka_mock_cluster_bootstraps(cluster_); }
  std::string url(const std::string& topic) const { return "kafka://" + brokers() + "/" + topic; }

  void create(const std::string& topic, int num_partitions) {
    require(rd_kafka_mock_topic_create(cluster_, topic.c_str(), num_partitions, 1));
  }

  /// Writes messages, in their order, and waits for the broker. Without a text: without a value.
  void write(const std::string& topic,
             int partition,
             const std::vector<std::optional<std::string>>& values) {
    rd_kafka_topic_t* const handle = rd_kafka_topic_new(producer_, topic.c_str(), nullptr);
    for (const std::optional<std::string>& value : values) {
      void* const text = value ? const_cast<char*>(value->data()) : nullptr;
      if (rd_kafka_produce(handle, partition, RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_BLOCK, text,
                           value ? value->size() : 0, "key", 3, nullptr) != 0) {
        require(rd_kafka_last_error());
      }
    }
    require(rd_kafka_flush(producer_, kDeadlineMs));
    rd_kafka_topic_destroy(handle);
  }

  /// Instead of messages, once.
  void answer_fetch(rd_kafka_resp_err_t error) {
    constexpr std::int16_t kFetch = 1;  // of the protocol
    rd_kafka_mock_push_request_errors(cluster_, kFetch, 1, error);
  }

  void go_down() { require(rd_kafka_mock_broker_set_down(cluster_, 1)); }
  void come_up() { require(rd_kafka_mock_broker_set_up(cluster_, 1)); }

 private:
  static constexpr int kDeadlineMs = 300'000;

  static void require(rd_kafka_resp_err_t error) {
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) throw std::runtime_error(rd_kafka_err2str(error));
  }

  static rd_kafka_t* open(const std::string& brokers) {
    char why[512];
    rd_kafka_conf_t* const properties = rd_kafka_conf_new();
    rd_kafka_conf_set(properties, "linger.ms", "1", why, sizeof why);
    rd_kafka_conf_set_log_cb(properties, [](const rd_kafka_t*, int, const char*, const char*) {});
    if (!brokers.empty()) {
      rd_kafka_conf_set(properties, "bootstrap.servers", brokers.c_str(), why, sizeof why);
    }
    return rd_kafka_new(RD_KAFKA_PRODUCER, properties, why, sizeof why);
  }

  rd_kafka_t* const owner_;
  rd_kafka_mock_cluster_t* const cluster_;
  rd_kafka_t* producer_ = nullptr;
};

}  // namespace satrap::data
