#include "src/data/topic/broker_watch.h"

#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/text.h"

namespace satrap::data {

BrokerWatch::BrokerWatch(KafkaConsumer& consumer, std::string name, std::int64_t timeout_ms)
    : consumer_(consumer), name_(std::move(name)), timeout_(timeout_ms) {}

void BrokerWatch::check(bool is_owed) {
  const auto now = std::chrono::steady_clock::now();
  if (!std::exchange(is_waiting_, true)) since_ = now;
  const std::string why = consumer_.why_unreachable();
  const std::string timeout = format_duration(std::chrono::duration<double>(timeout_).count());
  if (why.empty() == is_unreachable_) {
    is_unreachable_ = !why.empty();
    since_ = now;
    if (is_unreachable_) {
      log_warning("{}: no broker can be reached ({}); waiting up to data.kafka.timeout = {}", name_,
                  why, timeout);
    } else {
      log_info("{}: a broker can be reached again", name_);
    }
  }
  if (!is_unreachable_ && !is_owed) since_ = now;
  if (now - since_ <= timeout_) return;
  if (!why.empty()) {
    throw Error(ErrorCode::kIo,
                concat(name_, ": no broker could be reached for data.kafka.timeout = ", timeout,
                       ": ", why));
  }
  throw Error(ErrorCode::kIo,
              concat(name_, ": no message for data.kafka.timeout = ", timeout,
                     ": the broker does not send messages that are there; is the leader of a "
                     "partition down, or a transaction open?"));
}

}  // namespace satrap::data
