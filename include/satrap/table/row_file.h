#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "satrap/table/table.h"

namespace satrap::table {

/// A file of rows to start from, as a snapshot of one table on one shard writes it.
struct RowFile {
  std::string path = {};
  std::int32_t table = 0;  // number
  std::int64_t row_bytes = 0;
  std::int64_t bytes = 0;
  std::string xxh3 = {};                 // hex, of the whole file
  bool is_packed = false;                // rows as RowLayout::pack writes them
  std::int64_t part = 0, num_parts = 1;  // it holds the rows of this shard of num_parts
  bool weights_only = false;             // the optimizer's state starts afresh
};

/// The rows that load_rows takes from a file.
struct RowsToLoad {
  std::int64_t shard = 0, num_shards = 1;  // rows of this shard

  /// Rows that were updated later than this step of the job count as updated then: an asynchronous
  /// run may be ahead of the step it ended with, and another job counts its own steps.
  std::int64_t last_step = 0;

  const std::atomic<bool>* is_abandoned = nullptr;  // ends the loading with Error(kUnavailable)
};

/// Adds rows of a checkpoint's file to a table, under the table's number; the table must have none
/// of the file's keys. Streams: needs a few megabytes beyond the rows. Does not open a file that
/// cannot hold rows of the shard. Throws Error(kCorrupt) naming the file if it is missing or does
/// not match its entry, Error(kInvalidConfig) if its rows do not fit the table.
void load_rows(const RowFile& file, Table& table, const RowsToLoad& what);

}  // namespace satrap::table
