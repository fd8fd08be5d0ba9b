#include "src/engine/watched_run.h"

namespace satrap::engine {

WatchedRun::WatchedRun(const job::JobConfig& config, bool is_shown)
    : run_(config, options(is_shown), std::nullopt, 0) {}

trainer::TrainOptions WatchedRun::options(bool is_shown) {
  trainer::TrainOptions options;
  if (is_shown) return options;
  options.live = &live_;
  options.on_report = [this](const trainer::Report& report) {
    const MutexLock lock(mutex_);
    report_ = report;
  };
  return options;
}

bool WatchedRun::wait(std::chrono::milliseconds time) {
  run_.next_call(time);
  return run_.has_ended();
}

std::optional<trainer::Report> WatchedRun::newest_report() const {
  const MutexLock lock(mutex_);
  return report_;
}

}  // namespace satrap::engine
