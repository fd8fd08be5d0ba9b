#include "src/data/broker_watch.h"

#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/text.h"

namespace satrap::data {

BrokerWatch::BrokerWatch(KafkaConsumer& consumer, std::string name, std::int64_t timeout_ms)
    : consumer_(consumer), name_(std::move(name)), timeout_(timeout_ms) {}

void BrokerWatch::note_messages() { last_good_ = std::chrono::steady_clock::now(); }

void BrokerWatch::check(bool is_owed) {
  const auto now = std::chrono::steady_clock::now();
  const std::string why = consumer_.why_unreachable();
  const std::string timeout = format_duration(std::chrono::duration<double>(timeout_).count());
  if (why.empty() == is_unreachable_) {
    is_unreachable_ = !why.empty();
    last_good_ = now;
    if (is_unreachable_) {
      log_warning("{}: no broker can be reached ({}); waiting up to data.kafka.timeout = {}", name_,
                  why, timeout);
    } else {
      log_info("{}: a broker can be reached again", name_);
    }
  }
  if (!is_unreachable_ && !is_owed) last_good_ = now;
  if (now - last_good_ <= timeout_) return;
  throw Error(ErrorCode::kIo,
              concat(name_, ": no message for data.kafka.timeout = ", timeout, ": ",
                     why.empty() ? "the broker does not send messages that are there; is the "
                                   "leader of a partition down, or a transaction open?"
                                 : why));
}

}  // namespace satrap::data
