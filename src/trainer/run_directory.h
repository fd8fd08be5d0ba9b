#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "satrap/trainer/config.h"

namespace satrap::trainer {

/// The directory of a run: config.yaml (resolved), metrics.jsonl, summary.json, checkpoints/.
class RunDirectory {
 public:
  enum class Mode { kFresh, kOverwrite, kResume };

  /// kFresh refuses a directory that holds an earlier run; kOverwrite removes that run's files (and
  /// nothing else); kResume keeps them. Throws Error(kIo | kInvalidConfig).
  RunDirectory(const JobConfig& config, Mode mode);

  std::string path(const std::string& name) const { return root_ + "/" + name; }
  std::string checkpoints() const { return path("checkpoints"); }

  /// Opens metrics.jsonl for appending, without the lines of steps after `step` (written by a run
  /// that is now continued from `step`).
  void open_metrics(std::int64_t step);

  /// Appends one line and flushes it.
  void append_metrics(const nlohmann::ordered_json& line);

  /// Writes summary.json in one atomic step.
  void write_summary(const nlohmann::ordered_json& summary);

 private:
  std::string root_;
  std::ofstream metrics_;
};

}  // namespace satrap::trainer
