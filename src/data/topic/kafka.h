#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace satrap::data {

/// The functions that satrap needs of librdkafka. They are in a shared library of its own, which
/// kafka_library() opens when it is first needed, so that satrap runs without it. The two sides
/// share only this header and that of Error.

struct KafkaSettings {
  std::string brokers;  // "host:port,host"
  std::string topic;
  std::string group;                                            // that offsets are committed for
  std::vector<std::pair<std::string, std::string>> properties;  // of librdkafka
  std::int64_t timeout_ms = 0;                                  // of a request
  const std::atomic<bool>* stop = nullptr;  // ends requests that wait, with an error; may be null
};

struct KafkaMessage {
  std::int64_t offset = 0;
  const char* value = nullptr;  // null: a tombstone
  std::int64_t size = 0;
  std::int64_t time_ms = -1;  // since 1970, of its writing (CreateTime or LogAppendTime); -1: none
};

/// The messages that could be read without waiting longer.
struct KafkaRead {
  std::span<const KafkaMessage>
      messages;           // in the order of offsets; until the partition's next read
  std::int64_t end = -1;  // nothing follows them, up to this offset; -1: not known
  bool is_gone = false;   // the broker no longer has what comes after them
  std::vector<std::string> problems = {};  // that may pass and were not told before
};

/// Offsets of the oldest message and of the next one to be written.
struct KafkaWatermarks {
  std::int64_t low = 0, high = 0;
};

/// Reads the partitions of one topic, each from an offset on. It joins no group. One thread at a
/// time. Throws Error(kIo) for what brokers refuse, Error(kInvalidConfig) for a wrong property.
class KafkaConsumer {
 public:
  static constexpr std::int64_t kNotRead = -1;

  virtual ~KafkaConsumer() = default;

  /// The names of all topics. Waits for a broker, at most the timeout; throws Error(kIo) if none
  /// answers or if they refuse this client, as do the next three.
  virtual std::vector<std::string> topics() = 0;

  /// The watermarks of every partition; empty if there is no such topic.
  virtual std::vector<KafkaWatermarks> watermarks() = 0;

  /// The offset of the first message of each partition that is at least as new; -1: none is.
  virtual std::vector<std::int64_t> offsets_at(std::int64_t ms_since_1970) = 0;

  /// Begins to fetch each partition from its offset on, but those that are kNotRead.
  virtual void start(std::span<const std::int64_t> offsets) = 0;

  /// Waits up to `wait_ms` for the first message or the end.
  virtual KafkaRead read(std::int64_t partition, std::int64_t max_messages, int wait_ms) = 0;

  /// Waits up to `wait_ms` until some partition has something to read.
  virtual void wait(int wait_ms) = 0;

  /// Why no broker can be reached, "" if one can. May take half a second.
  virtual std::string why_unreachable() = 0;

  /// The next offset to be written, as the broker last told; -1: not yet.
  virtual std::int64_t high(std::int64_t partition) = 0;

  /// Tells the broker how far the settings' group has read: one try of a few seconds.
  virtual void commit(std::span<const std::int64_t> offsets) = 0;
};

class KafkaLibrary {
 public:
  virtual ~KafkaLibrary() = default;
  virtual std::string describe() const = 0;  // "librdkafka 2.0.2"
  virtual std::unique_ptr<KafkaConsumer> open(const KafkaSettings& settings) const = 0;
};

/// Opens the library on the first call. Throws Error(kUnavailable) if it is not there.
const KafkaLibrary& kafka_library();

}  // namespace satrap::data
