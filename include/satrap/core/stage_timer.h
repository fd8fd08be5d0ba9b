#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

namespace satrap {

/// Seconds spent in each stage of a pipeline, summed over threads. Stages are numbered from 0 by
/// their owner, which also knows their names. Thread-safe.
class StageTimers {
 public:
  explicit StageTimers(std::int64_t num_stages)
      : nanoseconds_(static_cast<std::size_t>(num_stages)) {}

  void add(std::int64_t stage, std::chrono::nanoseconds time) {
    nanoseconds_[static_cast<std::size_t>(stage)].fetch_add(time.count(),
                                                            std::memory_order_relaxed);
  }
  void add(std::int64_t stage, double seconds) {
    add(stage, std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
  }

  double seconds(std::int64_t stage) const {
    const std::atomic<std::int64_t>& sum = nanoseconds_[static_cast<std::size_t>(stage)];
    return 1e-9 * static_cast<double>(sum.load(std::memory_order_relaxed));
  }

 private:
  std::vector<std::atomic<std::int64_t>> nanoseconds_;
};

/// Adds the time from here to the end of the scope to a stage.
class ScopedStage {
 public:
  ScopedStage(StageTimers& timers, std::int64_t stage) : timers_(timers), stage_(stage) {}
  ~ScopedStage() { timers_.add(stage_, std::chrono::steady_clock::now() - begin_); }
  ScopedStage(const ScopedStage&) = delete;
  ScopedStage& operator=(const ScopedStage&) = delete;

 private:
  StageTimers& timers_;
  const std::int64_t stage_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace satrap
