#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "src/data/topic/kafka.h"

namespace satrap::data {

/// Watches over the waits for messages: tells the log when no broker can be reached and when one
/// can again, and ends a wait that is too long. One thread.
class BrokerWatch {
 public:
  /// `name`: of the topic, for people.
  BrokerWatch(KafkaConsumer& consumer, std::string name, std::int64_t timeout_ms);

  /// A wait is over, if there was one.
  void note_messages() { is_waiting_ = false; }

  /// During a wait. `is_owed`: there is a message that has not come. Throws Error(kIo) if that, or
  /// that no broker can be reached, has lasted longer than the timeout.
  void check(bool is_owed);

  bool is_unreachable() const { return is_unreachable_; }

 private:
  KafkaConsumer& consumer_;
  const std::string name_;
  const std::chrono::milliseconds timeout_;
  bool is_waiting_ = false;
  std::chrono::steady_clock::time_point since_;  // when what is waited for began to be missing
  bool is_unreachable_ = false;
};

}  // namespace satrap::data
