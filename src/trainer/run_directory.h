#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "event_file.h"
#include "run_lock.h"
#include "satrap/job/job_config.h"

namespace satrap::trainer {

/// The directory of a run, which it keeps for itself (RunLock): config.yaml (resolved),
/// metrics.jsonl, summary.json, checkpoints/, tensorboard/ if enabled; and report.html, which is
/// made from the first three.
class RunDirectory {
 public:
  enum class Mode { kFresh, kOverwrite, kResume };

  /// Makes sure that the directory can be written to and is no other job's, and changes nothing
  /// else in it. kFresh refuses one that holds an earlier run. Throws Error(kIo | kInvalidConfig).
  RunDirectory(const job::JobConfig& config, Mode mode);

  /// Begins the run: kOverwrite removes the files of the previous run (and nothing else);
  /// config.yaml is written, and metrics.jsonl is opened for appending, without the lines of steps
  /// after `step` (written by a run that now continues from `step`). Its next line is `start`.
  void begin(std::int64_t step, const nlohmann::ordered_json& start);

  std::string path(const std::string& name) const { return root_ + "/" + name; }
  std::string checkpoints() const { return path("checkpoints"); }
  static std::string checkpoints_of(const job::JobConfig& config) {
    return config.run_dir + "/checkpoints";
  }

  /// Appends one line, also to TensorBoard's events if enabled, and flushes it.
  void append_metrics(const nlohmann::ordered_json& line);

  /// Throws Error(kIo) if another job has taken the directory; see RunLock.
  void require_held() const { lock_->require_held(); }

  /// Whether summary.json is that of a run that has finished after `step`.
  bool has_finished(std::int64_t step) const;

  /// Writes summary.json atomically.
  void write_summary(const nlohmann::ordered_json& summary);

 private:
  const job::JobConfig& config_;
  const Mode mode_;
  const std::string root_;
  std::optional<RunLock> lock_;
  std::ofstream metrics_;
  std::optional<EventFile> events_;
};

}  // namespace satrap::trainer
