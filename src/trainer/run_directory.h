#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "satrap/checkpoint/checkpoint_writer.h"
#include "satrap/job/job_config.h"
#include "satrap/job/scratch.h"
#include "src/trainer/appended_file.h"
#include "src/trainer/event_file.h"
#include "src/trainer/remote_run.h"
#include "src/trainer/run_lock.h"

namespace satrap::trainer {

/// The directory of a run, which it keeps for itself (RunLock): config.yaml (resolved),
/// metrics.jsonl, summary.json, checkpoints/, tensorboard/ if enabled; and report.html, which is
/// made from the first three. Of a run in a store it is the folder of this machine
/// (job::local_run_dir), which begins with what the store has and is copied there (RemoteRun).
class RunDirectory {
 public:
  enum class Mode { kFresh, kOverwrite, kResume };

  /// Makes sure that the directory can be written to and is no other job's, and changes nothing
  /// else in it, and nothing in a store. kFresh refuses one that holds an earlier run. Throws
  /// Error(kIo | kInvalidConfig).
  RunDirectory(const job::JobConfig& config, Mode mode);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  /// Begins the run, and takes it over if it is in a store: kOverwrite removes the files of the
  /// previous run (and nothing else); config.yaml is written, and metrics.jsonl is opened for
  /// appending, without the lines of steps after `step` (written by a run that now continues from
  /// `step`). Its next line is `start`.
  void begin(std::int64_t step, const nlohmann::ordered_json& start);

  std::string path(const std::string& name) const { return root_ + "/" + name; }
  std::string checkpoints() const { return path("checkpoints"); }

  /// Whether there is anything of a run in this folder of this machine.
  static bool holds_run(const std::string& root) { return !earlier_run(root).empty(); }
  static std::string checkpoints_of(const job::JobConfig& config) {
    return job::local_run_dir(config) + "/checkpoints";
  }

  /// Path of the run's newest checkpoint on this machine; "": there is none.
  std::string newest_checkpoint();

  /// Path of a checkpoint: itself, or of a URL a copy that is removed with this object.
  std::string local_checkpoint(const std::string& path_or_url) const;

  /// Where checkpoints are kept, if not here.
  std::optional<checkpoint::CheckpointMirror> mirror() const;

  /// The run has ended: the store gets metrics and summary, if the run is there, and nothing that
  /// it has stays on this machine.
  void end() const;

  /// Appends one line, also to TensorBoard's events if enabled. Of a full disk see AppendedFile.
  void append_metrics(const nlohmann::ordered_json& line);

  /// The evaluation of a step that was appended, in this process or before; null: there is none.
  nlohmann::ordered_json evaluation_of(std::int64_t step) const;

  /// Throws Error(kIo) if another job has taken the directory (RunLock), or is known to have taken
  /// over the run in the store.
  void require_held() const;

  /// Whether summary.json is that of a run that has finished after `step`.
  bool has_finished(std::int64_t step) const;

  /// Writes summary.json atomically, once all lines of metrics.jsonl are there.
  void write_summary(const nlohmann::ordered_json& summary);

 private:
  static std::string earlier_run(const std::string& root);
  void refuse_earlier_run(const std::string& what) const;
  void require_no_earlier_run() const;
  void take_over() const;
  void upload_before_manifest() const;
  std::string copies() const { return path(".copies"); }

  const job::JobConfig& config_;
  const Mode mode_;
  const std::string root_;
  std::optional<RunLock> lock_;
  std::optional<RemoteRun> remote_;
  std::optional<std::string> newest_;  // newest_checkpoint() in the store
  std::optional<AppendedFile> metrics_;
  std::optional<EventFile> events_;
};

}  // namespace satrap::trainer
