#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

namespace satrap::pipeline {

/// How old the rows of a lookup on shards must be for it to arrive in time. The rows of step t that
/// contain the updates of steps up to v = t-1-s can be sent once the gradient of step v has reached
/// the shards, and the dense stage needs them s steps after it has submitted that gradient. So
///
///   s = 1 + ⌊latency / dense time of a step⌋
///
/// where the latency is that from the moment at which a gradient is sent until the rows that waited
/// for it are pooled: both ways of the link, the update and the lookup. Both times are measured, as
/// averages over about kMemory steps. More staleness would make no step faster.
///
/// Thread-safe. Times are of any one clock, so that a test can make them up.
class LookupPace {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `max_open`: steps that may be requested and not pooled yet. s is at most `max_staleness`.
  LookupPace(std::int64_t max_staleness, std::int64_t max_open);

  /// The rows of `step` are requested now. Returns v: they shall contain the updates of steps up to
  /// v. 0, any rows will do, until there are measurements.
  std::int64_t request(std::int64_t step, Time now);

  /// The gradient of `step` is sent now.
  void note_sent(std::int64_t step, Time now);

  /// The rows of `step` are pooled now. Somebody waited for them from `waited` to `arrived`; they
  /// contain the updates up to `read_version` and no later ones. `dense_seconds`: the time of a
  /// step in the dense stage, as measured last; 0: not measured yet.
  struct Pooled {
    std::int64_t step, read_version;
    Time waited, arrived, now;
    double dense_seconds;
  };
  void note_pooled(const Pooled& pooled);

  /// s; 0: not measured yet.
  std::int64_t staleness() const;

 private:
  static constexpr std::int64_t kMemory = 16;  // steps

  struct Step {
    std::int64_t step = 0;
    Time requested, sent;
  };
  Step& slot(std::int64_t step) { return steps_[static_cast<std::size_t>(step) % steps_.size()]; }
  std::int64_t needed() const;  // under the mutex

  const std::int64_t max_staleness_;
  mutable std::mutex mutex_;
  std::vector<Step> steps_;             // by step, modulo
  std::int64_t num_ready_ = 0;          // last lookups that did not wait
  double latency_ = 0.0, dense_ = 0.0;  // seconds; 0: not measured
};

}  // namespace satrap::pipeline
