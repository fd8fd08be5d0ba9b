#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace satrap::checkpoint {

/// The properties of a checkpoint that `checkpoint ls` and resuming need, without its rows.
struct CheckpointInfo {
  std::string path;  // the checkpoint's directory, or its URL
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::int64_t batches = 0;  // handed out in this epoch
  std::int64_t examples = 0;
  std::int64_t rows = 0;
  std::int64_t bytes = 0;
  std::string created;                    // UTC, ISO 8601
  std::string best_of;                    // "auc": no evaluation of the run so far had a better
                                          // one (train.early_stopping); else empty
  std::map<std::string, double> metrics;  // "train.auc", "train.loss", "eval.auc", … as then known
  std::string problem;  // why its manifest cannot be read; all but the path is then empty
};

/// Checkpoints under `directory` (a run's `checkpoints/`, or a run directory; or the URL of one),
/// oldest first.
/// Unfinished ones (temporary names) are not listed.
std::vector<CheckpointInfo> list_checkpoints(const std::string& directory);

/// Rewrites a checkpoint with the rows of every table divided among the files of `num_shards`
/// shards, as those shards would have written it; 1: one file per table. The content stays the
/// same: rows, dense state, position of the data, lookups made ahead, metrics. Any number of
/// shards, and a process without any, can load either; each reads only files that may hold its own
/// rows.
///
/// The new checkpoint replaces `path` atomically or, if `out` is not empty, is published under its
/// name in that folder. Tables are streamed: memory is a megabyte per shard. Returns the path of
/// the new one. Throws Error(kCorrupt) for a file that does not match its checksum. Any error
/// leaves everything as it was.
std::string reshard_checkpoint(const std::string& path,
                               std::int64_t num_shards,
                               const std::string& out);
inline constexpr std::int64_t kMaxFilesPerTable = 512;  // all open at once

/// Reads every file of a checkpoint and compares sizes and checksums. Throws Error(kCorrupt) naming
/// the first file that differs, how, and the newest older checkpoint in its folder that is intact.
/// Returns a digest of its content (hex) that does not depend on the order of rows in the files:
/// equal digests mean the same step, dense state, rows and optimizer state, bit for bit.
std::string verify_checkpoint(const std::string& path);

}  // namespace satrap::checkpoint
