#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "satrap/ps/table.h"
#include "src/ps/row_arena.h"
#include "src/ps/row_index.h"

namespace satrap::ps {

/// One partition of a table. `index_mutex` guards which rows there are, `rows_mutex` what is in
/// them together with the snapshot's progress; they are separate so that planning never waits for
/// updates.
struct Table::Partition {
  Partition(std::int64_t number, std::int64_t stride_bytes) : index(number), arena(stride_bytes) {}

  // Changed by the one inserting thread, with the mutex held; read by it without, by find with it.
  std::mutex index_mutex;
  RowIndex index;
  RowArena arena;
  std::atomic<std::int64_t> num_rows = 0;  // rows below it are complete
  std::atomic<std::int64_t> index_bytes = 0;

  /// A snapshot under way: rows [cursor, end) with 1 <= last_step <= step are still to be written.
  struct Snapshot {
    std::int64_t step = 0;
    std::int64_t cursor = 0, end = 0;
    std::vector<std::byte> aside;  // rows of that kind that have changed since, as they were
  };
  std::mutex rows_mutex;
  std::unique_ptr<Snapshot> snapshot;
};

}  // namespace satrap::ps
