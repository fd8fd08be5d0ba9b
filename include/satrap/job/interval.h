#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace satrap::job {

/// An interval of the configuration: "500 steps", "10min" (any duration), or "never".
struct Interval {
  std::int64_t steps = 0;  // > 0: by steps
  double seconds = 0.0;    // > 0: by time

  /// Throws Error(kInvalidConfig) starting with `where` for anything else.
  static Interval parse(const std::string& text, const std::string& where);
};

/// Reports when an interval has passed. One thread.
class IntervalClock {
 public:
  explicit IntervalClock(Interval interval);

  /// True once per interval; `step` is the step just finished.
  bool due(std::int64_t step);

 private:
  Interval interval_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace satrap::job
