#include "satrap/job/interval.h"

#include <charconv>
#include <string_view>

#include "satrap/core/error.h"
#include "satrap/core/text.h"

namespace satrap::job {

Interval Interval::parse(const std::string& text, const std::string& where) {
  Interval interval;
  if (text == "never") return interval;
  const char* end = text.data() + text.size();
  std::int64_t number = 0;
  const auto [rest, status] = std::from_chars(text.data(), end, number);
  std::string_view unit(rest, end);
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  const bool is_step = unit == "step" || unit == "steps";
  const bool is_epoch = unit == "epoch" || unit == "epochs";
  if (status == std::errc() && number > 0 && (is_step || is_epoch)) {
    (is_step ? interval.steps : interval.epochs) = number;
    return interval;
  }
  try {
    interval.seconds = parse_duration(text);
  } catch (const Error&) {
    interval.seconds = 0.0;
  }
  if (interval.seconds <= 0.0) {
    throw Error(
        ErrorCode::kInvalidConfig,
        concat(where,
               ": expected an interval such as '500 steps', '1 epoch', '10min', '30s' or "
               "'never', got '",
               text, "'",
               text.find('.') != std::string::npos && text.find(" epoch") != std::string::npos
                   ? "; parts of epochs are intervals of steps"
                   : ""));
  }
  return interval;
}

bool Interval::ends_with(std::int64_t step, std::int64_t ended_epochs) const {
  if (steps > 0) return step % steps == 0;
  return epochs > 0 && ended_epochs > 0 && ended_epochs % epochs == 0;
}

IntervalClock::IntervalClock(Interval interval)
    : interval_(interval), last_(std::chrono::steady_clock::now()) {}

bool IntervalClock::due(std::int64_t step, std::int64_t ended_epochs) {
  if (interval_.seconds <= 0.0) return interval_.ends_with(step, ended_epochs);
  const auto now = std::chrono::steady_clock::now();
  if (std::chrono::duration<double>(now - last_).count() < interval_.seconds) return false;
  last_ = now;
  return true;
}

}  // namespace satrap::job
