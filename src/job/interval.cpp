#include "satrap/job/interval.h"

#include <charconv>

#include "satrap/core/error.h"
#include "satrap/core/text.h"

namespace satrap::job {

Interval Interval::parse(const std::string& text, const std::string& where) {
  Interval interval;
  if (text == "never") return interval;
  const char* end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, interval.steps);
  const std::string unit(rest, end);
  const bool plain_number = status == std::errc() && interval.steps > 0;
  if (plain_number && (unit == " steps" || unit == " step" || unit == "steps")) return interval;
  interval.steps = 0;
  try {
    interval.seconds = parse_duration(text);
  } catch (const Error&) {
    interval.seconds = 0.0;
  }
  if (interval.seconds <= 0.0) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(where,
                       ": expected an interval such as '500 steps', '10min', '30s' or "
                       "'never', got '",
                       text, "'"));
  }
  return interval;
}

IntervalClock::IntervalClock(Interval interval)
    : interval_(interval), last_(std::chrono::steady_clock::now()) {}

bool IntervalClock::due(std::int64_t step) {
  if (interval_.steps > 0) return step % interval_.steps == 0;
  if (interval_.seconds <= 0.0) return false;
  const auto now = std::chrono::steady_clock::now();
  if (std::chrono::duration<double>(now - last_).count() < interval_.seconds) return false;
  last_ = now;
  return true;
}

}  // namespace satrap::job
