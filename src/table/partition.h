#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "satrap/core/mutex.h"
#include "satrap/kernels/dims.h"
#include "satrap/table/table.h"
#include "src/table/row_ages.h"
#include "src/table/row_arena.h"
#include "src/table/row_index.h"

namespace satrap::table {

/// One partition of a table. `index_mutex` guards the set of rows, `rows_mutex` their contents and
/// the snapshot's progress; they are separate so that planning never waits for updates.
struct Table::Partition {
  Partition(std::int64_t number,
            std::int64_t num_shards,
            std::shared_ptr<RowMemory> memory,
            const RowLimits& limits)
      : index(number, num_shards), arena(std::move(memory), number) {
    if (limits.any()) ages.emplace(limits, number, num_shards);
  }

  // The one inserting thread changes it with the mutex held and reads it without; find reads it
  // with the mutex held.
  Mutex index_mutex;
  RowIndex index;
  RowArena arena;
  std::atomic<std::int64_t> num_rows = 0;     // numbers below it are, or were, rows
  std::atomic<std::int64_t> index_bytes = 0;  // including the memory of limits

  /// With limits. Numbers of evicted rows are in `departed`, by step, then in `free`.
  struct Departed {
    std::int64_t step;
    std::int64_t number;
  };
  std::optional<RowAges> ages;
  RowArena sightings{sizeof(std::uint32_t)};  // of candidates, by number
  std::int64_t num_sightings = 0;
  std::int64_t begun_step = 0;
  std::deque<Departed> departed SATRAP_GUARDED_BY(index_mutex);
  std::vector<std::uint32_t> free SATRAP_GUARDED_BY(index_mutex);
  /// Free rows are anywhere in memory: prefetches the one after the next few.
  void prefetch_free(std::int64_t stride_bytes) const SATRAP_REQUIRES(index_mutex) {
    constexpr std::size_t kLookAhead = 4;
    if (free.size() < kLookAhead) return;
    const std::uint32_t number = free[free.size() - kLookAhead];
    prefetch_write(arena.row(number), stride_bytes);
    ages->prefetch(number);
  }
  std::atomic<std::int64_t> num_gone = 0;  // in `departed` and `free`

  std::int64_t number_of(const std::byte* row) const {
    return arena.number_of(row, num_rows.load(std::memory_order_relaxed));
  }

  std::uint32_t& sightings_of(std::int64_t number) {
    for (; num_sightings <= number; ++num_sightings) sightings.add(num_sightings);
    return *reinterpret_cast<std::uint32_t*>(sightings.row(number));
  }

  /// A snapshot in progress: rows [cursor, end) with 1 <= last_step <= step must still be written.
  struct Snapshot {
    std::int64_t step = 0;
    std::int64_t cursor = 0, end = 0;
    std::vector<std::byte> aside;  // copies of such rows from before they changed
    std::unordered_set<std::int64_t>
        replaced;  // numbers that now belong to other rows, whatever their step
  };
  Mutex rows_mutex;
  std::unique_ptr<Snapshot> snapshot SATRAP_GUARDED_BY(rows_mutex);

  /// Keeps what a snapshot still needs of rows that are about to change.
  void copy_aside(std::span<const RowPointer> rows, std::int64_t row_bytes)
      SATRAP_REQUIRES(rows_mutex);

  /// Frees the numbers of rows evicted when `last_step` began or earlier: the updates of that step
  /// have been made, so no later reader needs their contents.
  void free_departed(std::int64_t last_step, std::int64_t row_bytes) SATRAP_REQUIRES(index_mutex);
};

}  // namespace satrap::table
