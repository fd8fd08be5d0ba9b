#pragma once

#include <cstdint>

#include "satrap/job/interval.h"

namespace satrap::trainer {

/// When a run reports. train.report_every says when the user is told. If it is a time, there are
/// points in between, for curves and for whoever watches a terminal: kPoints over the whole run, or
/// more, and in the first seconds. One thread.
class ReportClock {
 public:
  static constexpr std::int64_t kPoints = 50;

  enum class Due : std::uint8_t { kNo, kPoint, kReport };

  explicit ReportClock(job::Interval interval) : interval_(interval) {}

  /// The share that a run begins with which continues; its earlier points are there.
  void begin(double share) { num_points_ = points_at(share); }

  /// After `step`, with which so many epochs are complete if one ends with it, else 0; `seconds`
  /// after the start, with this share of the run done; negative: unknown.
  Due due(std::int64_t step, std::int64_t ended_epochs, double seconds, double share);

 private:
  static std::int64_t points_at(double share) {
    return share < 0.0 ? 0 : static_cast<std::int64_t>(share * static_cast<double>(kPoints));
  }

  const job::Interval interval_;
  double last_report_ = 0.0;     // in seconds
  double next_second_ = 1.0;     // of a point, whatever the share
  std::int64_t num_points_ = 0;  // of the share, passed
};

}  // namespace satrap::trainer
