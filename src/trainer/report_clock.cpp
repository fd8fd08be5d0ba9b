#include "src/trainer/report_clock.h"

#include <algorithm>

namespace satrap::trainer {

ReportClock::Due ReportClock::due(std::int64_t step,
                                  std::int64_t ended_epochs,
                                  double seconds,
                                  double share) {
  if (interval_.seconds <= 0.0) {
    return interval_.ends_with(step, ended_epochs) ? Due::kReport : Due::kNo;
  }
  const std::int64_t passed = points_at(share);
  const bool is_new = passed > num_points_ && passed < kPoints;  // the end is reported in any case
  const bool is_early = seconds >= next_second_;
  num_points_ = std::max(num_points_, passed);
  while (seconds >= next_second_) next_second_ *= 2.0;
  if (seconds - last_report_ >= interval_.seconds) {
    last_report_ = seconds;
    return Due::kReport;
  }
  return is_new || is_early ? Due::kPoint : Due::kNo;
}

}  // namespace satrap::trainer
