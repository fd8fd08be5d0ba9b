#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "satrap/core/mutex.h"

namespace satrap::pipeline {

/// How old the rows of a lookup on shards must be for it to arrive in time. The rows of step t that
/// contain the updates of steps up to v = t-1-s can be sent once the gradient of step v has reached
/// the shards, and the dense stage needs them s steps after it has submitted that gradient. So
///
///   s = 1 + ⌊1.05 latency / time of a step⌋
///
/// where the latency is that from the moment at which a gradient is sent until the rows that waited
/// for it are pooled: both ways of the link, the update and the lookup. More staleness would make
/// no step faster. If s is too small, the latency is the time of s steps; the 5 % let it grow then.
///
/// The latency is the median of the last kSamples lookups that read the newest version, t-1, while
/// nothing else is under way: on a busy link or processor s steps that are under way take about s
/// steps whatever s is (Little's law), and s would never fall. A bound that starts at 0 has such
/// lookups by itself. Otherwise three in a row read the newest version now and then, for which the
/// dense stage waits as in sync: the first lets what is under way arrive, the second is measured,
/// and the third keeps those behind it from arriving with the second. The time of a step is an
/// average over about 1 / kWeight others.
///
/// Thread-safe. Times are of any one clock, so that a test can make them up.
class LookupPace {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `max_open`: steps that may be requested and not pooled yet. s is at most `max_staleness`.
  LookupPace(std::int64_t max_staleness, std::int64_t max_open);

  /// The rows of `step` are requested now. Returns v: they shall contain the updates of steps up to
  /// v, and no less than the rows of the step before.
  std::int64_t request(std::int64_t step, Time now);

  /// The gradient of `step` is sent now.
  void note_sent(std::int64_t step, Time now);

  /// The rows of `step` are pooled now. They contain the updates up to `read_version` and no later
  /// ones.
  void note_pooled(std::int64_t step, std::int64_t read_version, Time now);

  /// s; 1 until there are measurements.
  std::int64_t staleness() const;

 private:
  static constexpr std::int64_t kEvery = 1024;  // steps
  static constexpr int kSamples = 3;            // latencies
  static constexpr double kWeight = 1.0 / 16;   // of a new time of a step
  static constexpr double kMargin = 1.05;

  struct Step {
    std::int64_t step = -1;
    Time requested, sent;
    bool is_newest = false;  // its rows
  };
  Step& slot(std::int64_t step) SATRAP_REQUIRES(mutex_) {
    return steps_[static_cast<std::size_t>(step) % steps_.size()];
  }
  /// Three lookups that read the newest version begin so many steps after the first.
  bool begins(std::int64_t steps) const;
  bool reads_newest(std::int64_t step) const SATRAP_REQUIRES(mutex_);
  std::int64_t needed() const SATRAP_REQUIRES(mutex_);  // s

  const std::int64_t max_staleness_;
  mutable Mutex mutex_;
  std::vector<Step> steps_ SATRAP_GUARDED_BY(mutex_);  // by step, modulo
  std::int64_t least_ SATRAP_GUARDED_BY(mutex_) = 0;   // version that was requested last
  std::int64_t first_ SATRAP_GUARDED_BY(mutex_) = 0;   // step; 0: none yet
  // Seconds, the newest at num_latencies_ - 1, modulo.
  std::array<double, kSamples> latencies_ SATRAP_GUARDED_BY(mutex_){};
  std::int64_t num_latencies_ SATRAP_GUARDED_BY(mutex_) = 0;
  double step_seconds_ SATRAP_GUARDED_BY(mutex_) = 0.0;  // 0: not measured
};

}  // namespace satrap::pipeline
