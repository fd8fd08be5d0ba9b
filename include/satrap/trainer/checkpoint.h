#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace satrap::trainer {

/// What `checkpoint ls` and resuming need to know of a checkpoint without reading its rows.
struct CheckpointInfo {
  std::string path;  // the checkpoint's directory
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::int64_t batches = 0;  // handed out in this epoch
  std::int64_t examples = 0;
  std::int64_t rows = 0;
  std::int64_t bytes = 0;
  std::string created;                    // UTC, ISO 8601
  std::map<std::string, double> metrics;  // "train.auc", "train.loss", "eval.auc", … as then known
  std::string problem;  // why its manifest cannot be read; the rest is then empty but the path
};

/// Checkpoints under `directory` (a run's `checkpoints/`, or a run directory), oldest first.
/// Unfinished ones (temporary names) are not listed.
std::vector<CheckpointInfo> list_checkpoints(const std::string& directory);

/// Reads every file of a checkpoint and compares sizes and checksums. Throws Error(kCorrupt) naming
/// the first file that differs, how, and the newest older checkpoint beside it that is intact.
/// Returns a digest of its content (hex) that does not depend on the order of rows in the files:
/// equal digests mean the same step, dense state, rows and optimizer state, bit for bit.
std::string verify_checkpoint(const std::string& path);

}  // namespace satrap::trainer
