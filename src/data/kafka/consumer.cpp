#include "src/data/kafka/consumer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

#include <librdkafka/rdkafka.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "src/data/kafka/client_properties.h"
#include "src/data/kafka/handles.h"

namespace satrap::data {
namespace {

using Clock = std::chrono::steady_clock;

/// Messages that librdkafka has handed over, until the next ones.
struct Fetched {
  std::vector<rd_kafka_message_t*> held;
  std::vector<KafkaMessage> messages;
  Clock::time_point next_look{};  // see refill()

  void release() {
    for (rd_kafka_message_t* message : held) rd_kafka_message_destroy(message);
    held.clear();
    messages.clear();
  }
};

/// A descriptor that librdkafka writes to.
struct Wakeup {
  Wakeup() : descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (descriptor < 0) throw Error(ErrorCode::kIo, concat("eventfd: ", std::strerror(errno)));
  }
  ~Wakeup() { close(descriptor); }
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  const int descriptor;
};

class Consumer : public KafkaConsumer {
 public:
  explicit Consumer(const KafkaSettings& settings) : settings_(settings) {
    ClientProperties chosen = client_properties(settings);
    looks_at_queues_ = chosen.looks_at_queues;
    Properties& properties = chosen.properties;
    rd_kafka_conf_set_opaque(properties.get(), this);
    rd_kafka_conf_set_error_cb(properties.get(), &Consumer::on_error);
    // Errors arrive by on_error; satrap says itself what a user should know.
    rd_kafka_conf_set_log_cb(properties.get(),
                             [](const rd_kafka_t*, int, const char*, const char*) {});
    std::array<char, 512> why{};
    client_.reset(rd_kafka_new(RD_KAFKA_CONSUMER, properties.get(), why.data(), why.size()));
    if (!client_) {
      throw Error(ErrorCode::kInvalidConfig, concat("data.kafka.properties: ", why.data()));
    }
    std::ignore = properties.release();  // the client owns it now
  }

  ~Consumer() override {
    for (Fetched& fetched : fetched_) fetched.release();
  }
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  std::vector<std::string> topics() override {
    const Metadata all = metadata(true);
    std::vector<std::string> names;
    for (int i = 0; i < all->topic_cnt; ++i) names.emplace_back(all->topics[i].topic);
    return names;
  }

  std::vector<KafkaWatermarks> watermarks() override {
    const int num_partitions = count_partitions();
    std::vector<KafkaWatermarks> all(static_cast<std::size_t>(num_partitions));
    for (int p = 0; p < num_partitions; ++p) {
      KafkaWatermarks& marks = all[static_cast<std::size_t>(p)];
      ask("the offsets of its messages", [&](int wait_ms) {
        return rd_kafka_query_watermark_offsets(client_.get(), settings_.topic.c_str(), p,
                                                &marks.low, &marks.high, wait_ms);
      });
    }
    return all;
  }

  std::vector<std::int64_t> offsets_at(std::int64_t ms_since_1970) override {
    const int num_partitions = count_partitions();
    const PartitionList list = make_list(
        std::vector<std::int64_t>(static_cast<std::size_t>(num_partitions), ms_since_1970));
    ask("the offsets of its messages by their times", [&](int wait_ms) {
      for (int i = 0; i < list->cnt; ++i) list->elems[i].offset = ms_since_1970;
      const rd_kafka_resp_err_t error =
          rd_kafka_offsets_for_times(client_.get(), list.get(), wait_ms);
      for (int i = 0; i < list->cnt && error == RD_KAFKA_RESP_ERR_NO_ERROR; ++i) {
        if (list->elems[i].err != RD_KAFKA_RESP_ERR_NO_ERROR) return list->elems[i].err;
      }
      return error;
    });
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(num_partitions), kNotRead);
    for (int i = 0; i < list->cnt; ++i) {
      const rd_kafka_topic_partition_t& partition = list->elems[i];
      offsets[static_cast<std::size_t>(partition.partition)] =
          partition.offset >= 0 ? partition.offset : kNotRead;
    }
    return offsets;
  }

  void start(std::span<const std::int64_t> offsets) override {
    fetched_.resize(offsets.size());
    for (std::size_t p = 0; p < offsets.size(); ++p) {
      Queue queue(rd_kafka_queue_get_partition(client_.get(), settings_.topic.c_str(),
                                               static_cast<std::int32_t>(p)));
      rd_kafka_queue_forward(queue.get(), nullptr);  // each partition is read by itself
      rd_kafka_queue_io_event_enable(queue.get(), wakeup_.descriptor, &kOne, sizeof kOne);
      queues_.push_back(std::move(queue));
    }
    const PartitionList list = make_list(offsets);
    const rd_kafka_resp_err_t error = rd_kafka_assign(client_.get(), list.get());
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
      fail(concat("cannot be read: ", rd_kafka_err2str(error)));
  }

  KafkaRead read(std::int64_t partition, std::int64_t max_messages, int wait_ms) override {
    rd_kafka_poll(client_.get(), 0);  // calls on_error
    Fetched& fetched = fetched_[static_cast<std::size_t>(partition)];
    rd_kafka_queue_t* const queue = queues_[static_cast<std::size_t>(partition)].get();
    fetched.release();
    fetched.held.resize(static_cast<std::size_t>(max_messages));
    // It waits until it has all it was asked for.
    ssize_t taken =
        rd_kafka_consume_batch_queue(queue, 0, fetched.held.data(), fetched.held.size());
    if (taken <= 0 && wait_ms > 0) {
      taken = rd_kafka_consume_batch_queue(queue, wait_ms, fetched.held.data(), 1);
    }
    fetched.held.resize(static_cast<std::size_t>(std::max<ssize_t>(taken, 0)));
    KafkaRead result;
    for (const rd_kafka_message_t* message : fetched.held) {
      if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        fetched.messages.push_back({.offset = message->offset,
                                    .value = static_cast<const char*>(message->payload),
                                    .size = static_cast<std::int64_t>(message->len),
                                    .time_ms = rd_kafka_message_timestamp(message, nullptr)});
        result.end = -1;
      } else {
        note(*message, result);
      }
    }
    result.messages = fetched.messages;
    if (!looks_at_queues_ && !fetched.messages.empty()) refill(partition, fetched);
    return result;
  }

  void wait(int wait_ms) override {
    rd_kafka_poll(client_.get(), 0);
    std::uint64_t events = 0;
    static_cast<void>(!::read(wakeup_.descriptor, &events, sizeof events));
    for (const Queue& queue : queues_) {
      if (rd_kafka_queue_length(queue.get()) > 0) return;
    }
    pollfd descriptor{.fd = wakeup_.descriptor, .events = POLLIN, .revents = 0};
    poll(&descriptor, 1, wait_ms);
  }

  /// Whether a broker is back is asked for: where no message follows, nothing else tells.
  std::string why_unreachable() override {
    rd_kafka_poll(client_.get(), 0);
    if (unreachable_.empty()) return "";
    const rd_kafka_metadata_t* found = nullptr;
    if (rd_kafka_metadata(client_.get(), 0, nullptr, &found, kProbeMs) ==
        RD_KAFKA_RESP_ERR_NO_ERROR) {
      rd_kafka_metadata_destroy(found);
      unreachable_.clear();
    }
    return unreachable_;
  }

  std::int64_t high(std::int64_t partition) override {
    std::int64_t low = -1, high = -1;
    rd_kafka_get_watermark_offsets(client_.get(), settings_.topic.c_str(),
                                   static_cast<std::int32_t>(partition), &low, &high);
    return high >= 0 ? high : -1;
  }

  void commit(std::span<const std::int64_t> offsets) override {
    const PartitionList list = make_list(offsets);
    const Queue answers(rd_kafka_queue_new(client_.get()));
    // rd_kafka_commit() would try twice, and has no deadline.
    const rd_kafka_resp_err_t error =
        rd_kafka_commit_queue(client_.get(), list.get(), answers.get(), nullptr, nullptr);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) fail_commit(rd_kafka_err2str(error));
    const Event answer(rd_kafka_queue_poll(answers.get(), kCommitMs));
    if (!answer) fail_commit(concat("no broker answered within ", kCommitMs / 1000, "s"));
    if (rd_kafka_event_error(answer.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) {
      fail_commit(rd_kafka_event_error_string(answer.get()));
    }
  }

 private:
  static constexpr std::uint64_t kOne = 1;
  static constexpr int kAttemptMs = 1000, kProbeMs = 500, kCommitMs = 5000;

  static void on_error(rd_kafka_t*, int code, const char* reason, void* opaque) {
    auto& self = *static_cast<Consumer*>(opaque);
    const auto error = static_cast<rd_kafka_resp_err_t>(code);
    if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
      self.unreachable_ = self.last_error_.empty() ? reason : self.last_error_;
    } else {
      self.last_error_ = reason;
    }
    if (error == RD_KAFKA_RESP_ERR__AUTHENTICATION) self.is_refused_ = true;
  }

  /// librdkafka before 2.3 looks at a queue that was full only when something happens between it
  /// and the broker, up to a second later. A request does, and is answered in a millisecond.
  void refill(std::int64_t partition, Fetched& fetched) {
    rd_kafka_queue_t* const queue = queues_[static_cast<std::size_t>(partition)].get();
    const auto waiting = static_cast<std::int64_t>(rd_kafka_queue_length(queue));
    const bool has_more = fetched.messages.back().offset + 1 + waiting < high(partition);
    if (!has_more || waiting >= kQueuedMessages / 2 || Clock::now() < fetched.next_look) return;
    std::int64_t low = 0, end = 0;
    rd_kafka_query_watermark_offsets(client_.get(), settings_.topic.c_str(),
                                     static_cast<std::int32_t>(partition), &low, &end, kLookMs);
    fetched.next_look = Clock::now() + std::chrono::milliseconds(kLookMs);
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kIo,
                concat("topic '", settings_.topic, "' at kafka://", settings_.brokers, " ", what));
  }

  [[noreturn]] void fail_commit(const std::string& why) const {
    fail(concat("does not take the offsets of the group: ", why,
                "; the next checkpoint tries again"));
  }

  /// Calls request(wait_ms), which returns an error code, until it succeeds.
  template <class Request>
  void ask(const char* what, const Request& request) {
    const auto deadline = Clock::now() + std::chrono::milliseconds(settings_.timeout_ms);
    while (true) {
      const rd_kafka_resp_err_t error = request(kAttemptMs);
      if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return;
      rd_kafka_poll(client_.get(), 0);
      if (settings_.stop != nullptr && *settings_.stop) {
        fail(concat("was not waited for after the signal to stop: it has not given ", what));
      }
      if (is_refused_) {
        fail(concat("refuses this client: ", last_error_,
                    "; data.kafka.properties says who it is (security.protocol, sasl.mechanisms, "
                    "sasl.username, sasl.password)"));
      }
      const bool may_pass =
          error == RD_KAFKA_RESP_ERR__TRANSPORT || error == RD_KAFKA_RESP_ERR__TIMED_OUT ||
          error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || error == RD_KAFKA_RESP_ERR__WAIT_COORD ||
          error == RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS ||
          error == RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE ||
          error == RD_KAFKA_RESP_ERR_NOT_COORDINATOR ||
          error == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE ||
          error == RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION;
      if (!may_pass) fail(concat("does not give ", what, ": ", rd_kafka_err2str(error)));
      if (Clock::now() < deadline) {
        rd_kafka_poll(client_.get(), 100);
        continue;
      }
      fail(concat("cannot be reached: no broker gave ", what,
                  " within data.kafka.timeout = ", static_cast<double>(settings_.timeout_ms) / 1e3,
                  "s: ", last_error_.empty() ? rd_kafka_err2str(error) : last_error_));
    }
  }

  Metadata metadata(bool of_all_topics) {
    const TopicHandle topic(rd_kafka_topic_new(client_.get(), settings_.topic.c_str(), nullptr));
    if (!topic) fail("is no possible name of a topic");
    const rd_kafka_metadata_t* found = nullptr;
    ask("its description", [&](int wait_ms) {
      return rd_kafka_metadata(client_.get(), of_all_topics ? 1 : 0, topic.get(), &found, wait_ms);
    });
    return Metadata(found);
  }

  /// The number of its partitions; 0: there is no such topic.
  int count_partitions() {
    const Metadata found = metadata(false);
    const rd_kafka_metadata_topic_t& topic = found->topics[0];
    if (topic.err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
        topic.err == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC) {
      return 0;
    }
    if (topic.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      fail(concat("cannot be read: ", rd_kafka_err2str(topic.err)));
    }
    return topic.partition_cnt;
  }

  /// An error in the place of a message. Most pass; the reader stops waiting at its own deadline.
  void note(const rd_kafka_message_t& message, KafkaRead& result) {
    switch (message.err) {
      case RD_KAFKA_RESP_ERR__PARTITION_EOF:
        result.end = message.offset;
        return;
      case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
      case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
        result.is_gone = true;
        return;
      case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
        fail(concat("cannot be read: ", rd_kafka_message_errstr(&message)));
      case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
      case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
      case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
        fail(concat("no longer has partition ", message.partition, ": ",
                    rd_kafka_message_errstr(&message), "; was the topic deleted?"));
      case RD_KAFKA_RESP_ERR__BAD_MSG:
      case RD_KAFKA_RESP_ERR__BAD_COMPRESSION:
        fail(concat("has damaged messages in partition ", message.partition, ": ",
                    rd_kafka_message_errstr(&message),
                    "; write them again, or begin a new job after them (data.kafka.start)"));
      case RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED:
        fail(concat("has messages in partition ", message.partition,
                    " that this librdkafka cannot read: ", rd_kafka_message_errstr(&message),
                    "; write them with another compression, or install librdkafka with it"));
      default:
        last_error_ = rd_kafka_message_errstr(&message);
        if (told_.insert(last_error_).second) result.problems.push_back(last_error_);
    }
  }

  PartitionList make_list(std::span<const std::int64_t> offsets) const {
    PartitionList list(rd_kafka_topic_partition_list_new(static_cast<int>(offsets.size())));
    for (std::size_t p = 0; p < offsets.size(); ++p) {
      if (offsets[p] == kNotRead) continue;
      rd_kafka_topic_partition_list_add(list.get(), settings_.topic.c_str(),
                                        static_cast<std::int32_t>(p))
          ->offset = offsets[p];
    }
    return list;
  }

  const KafkaSettings settings_;
  const Wakeup wakeup_;  // readable when something has arrived in an empty queue
  std::string last_error_;
  std::string unreachable_;  // "": as far as is known, a broker can be reached
  bool is_refused_ = false;
  bool looks_at_queues_ = false;  // librdkafka does so by itself
  std::set<std::string> told_;    // problems
  Client client_;                 // after what on_error() writes, also while it is destroyed
  std::vector<Queue> queues_;     // of each partition
  std::vector<Fetched> fetched_;  // the same
};

}  // namespace

std::unique_ptr<KafkaConsumer> open_consumer(const KafkaSettings& settings) {
  return std::make_unique<Consumer>(settings);
}

}  // namespace satrap::data
