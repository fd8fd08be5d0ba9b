#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace satrap::job {

/// An interval of the configuration: "500 steps", "2 epochs", "10min" (any duration), or "never".
struct Interval {
  std::int64_t steps = 0;   // > 0: by steps
  std::int64_t epochs = 0;  // > 0: by passes over the data
  double seconds = 0.0;     // > 0: by time

  /// Throws Error(kInvalidConfig) starting with `where` for anything else.
  static Interval parse(const std::string& text, const std::string& where);

  /// Whether an interval by steps or epochs ends with `step`. `ended_epochs`: as many epochs are
  /// complete if one ends with this step; else 0.
  bool ends_with(std::int64_t step, std::int64_t ended_epochs) const;
};

/// Reports when an interval has passed. One thread.
class IntervalClock {
 public:
  explicit IntervalClock(Interval interval);

  /// True once per interval; `step` is the step just finished, `ended_epochs` as in Interval.
  bool due(std::int64_t step, std::int64_t ended_epochs);

 private:
  Interval interval_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace satrap::job
