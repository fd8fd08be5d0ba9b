#pragma once

#include <atomic>
#include <string>
#include <vector>

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
/// publish its next checkpoint. All throw as RemoteFolder; thread-safe.
class RemoteRun {
 public:
  explicit RemoteRun(const std::string& url);

  checkpoint::RemoteCheckpoints checkpoints() const;

  /// The name of something that an earlier run has left; "": there is nothing.
  std::string find_run() const;

  /// Hex digits that no other process has.
  const std::string& owner_id() const { return owner_id_; }

  /// From now on the run is this process's.
  void take_over() const;

  /// Throws Error(kIo) if it is no longer.
  void require_owned() const;

  /// Whether require_owned() has found that out. Asks the store nothing.
  bool is_lost() const { return is_lost_; }

  /// Makes metrics and summary in the local folder `root` those of the store. Local
  /// metrics that begin with those of the store stay, and TensorBoard's events with them.
  void bring(const std::string& root) const;

  /// Names of TensorBoard's files in the store.
  std::vector<std::string> events() const;

  /// Removes the run. Its config.yaml goes last.
  void clear() const;

  void write_config(const std::string& yaml) const;

  /// Copies metrics, summary and events from `root`.
  void upload(const std::string& root) const;

 private:
  const data::RemoteFolder folder_;
  const std::string owner_id_, owner_;  // the second is what owner.json then holds
  mutable std::atomic<bool> is_lost_{false};
};

}  // namespace satrap::trainer
