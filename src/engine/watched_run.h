#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "satrap/core/mutex.h"
#include "satrap/job/job_config.h"
#include "satrap/trainer/live_progress.h"
#include "satrap/trainer/trainer.h"
#include "src/engine/run.h"

namespace satrap::engine {

/// A run of a job with satrap's own network. For one thread, but stop().
class WatchedRun {
 public:
  /// `is_shown`: on standard error, as the command does; else progress() is for the program alone.
  WatchedRun(const job::JobConfig& config, bool is_shown);

  /// Until it has ended, at most so long. Returns whether it has.
  bool wait(std::chrono::milliseconds time);
  void stop() { run_.stop(); }
  void close() { run_.close(); }  // ends it, if it is not over, and waits
  const trainer::TrainOutcome& result() { return run_.result(); }
  const std::string& words() const { return run_.words(); }

  const trainer::LiveProgress& live() const { return live_; }
  std::optional<trainer::Report> newest_report() const;

 private:
  trainer::TrainOptions options(bool is_shown);

  trainer::LiveProgress live_;
  mutable Mutex mutex_;
  std::optional<trainer::Report> report_ SATRAP_GUARDED_BY(mutex_);
  Run run_;  // the last member, since it tells these
};

}  // namespace satrap::engine
