#pragma once

#include <atomic>
#include <cstdint>

#include "satrap/ps/shard_job.h"
#include "satrap/ps/table.h"

namespace satrap::ps {

/// What load_rows takes of a file.
struct RowsToLoad {
  std::int64_t shard = 0, num_shards = 1;  // rows of this shard

  /// Rows that were updated later than this step of the job count as updated then: an asynchronous
  /// run may be ahead of the step it ended with, and another job has steps of its own.
  std::int64_t last_step = 0;

  const std::atomic<bool>* is_abandoned = nullptr;  // ends the loading with Error(kUnavailable)
};

/// Adds rows of a checkpoint's file to a table, under the table's number; none of the file's keys
/// may be there already. Streams: takes a few megabytes beyond the rows. A file that can hold no
/// row of the shard is not opened. Throws Error(kCorrupt) naming the file if it is missing or its
/// content is not what its entry says, Error(kInvalidConfig) if its rows are not the table's.
void load_rows(const ShardJob::RowFile& file, Table& table, const RowsToLoad& what);

}  // namespace satrap::ps
