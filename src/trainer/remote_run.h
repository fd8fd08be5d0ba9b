#pragma once

#include <string>

#include "satrap/checkpoint/remote_checkpoints.h"
#include "satrap/data/remote_folder.h"

namespace satrap::trainer {

/// Files of a run, in its directory and in a store.
inline constexpr const char* kRunConfig = "config.yaml";
inline constexpr const char* kRunMetrics = "metrics.jsonl";
inline constexpr const char* kRunSummary = "summary.json";
inline constexpr const char* kRunReport = "report.html";

/// A run that is kept in a store. A store has no locks: owner.json there names the process that was
/// the last to begin or continue the run, and another that still trains ends before it would
/// publish its next checkpoint. All throw as RemoteFolder; thread-safe after take_over().
class RemoteRun {
 public:
  explicit RemoteRun(const std::string& url) : folder_(url) {}

  checkpoint::RemoteCheckpoints checkpoints() const;

  /// The name of something that an earlier run has left; "": there is nothing.
  std::string find_run() const;

  /// From now on the run is this process's.
  void take_over();

  /// Throws Error(kIo) if it is no longer.
  void require_owned() const;

  /// Makes metrics and summary in the local folder `root` those of the store.
  void bring(const std::string& root) const;

  /// Removes the run. Its config.yaml goes last.
  void clear() const;

  void write_config(const std::string& yaml) const;

  /// Copies metrics, summary and events from `root`.
  void upload(const std::string& root) const;

 private:
  const data::RemoteFolder folder_;
  std::string owner_;  // what this process has written to owner.json
};

}  // namespace satrap::trainer
