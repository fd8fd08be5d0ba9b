#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "satrap/core/ids.h"

namespace satrap::table {

/// Whole rows by key, headers included: the store that a cache of rows is put in front of.
/// Implemented over tables of this process (TableRowStore) and over shards (ps::ShardClient).
///
/// Thread-safe. `keys` ascend and are unique; they may be of several tables, and empty. Row u has
/// RowLayout::row_bytes of its key's table. Calls are not ordered with steps in flight. After an
/// Error, rows of a fetch are undefined, and some rows of a put may have been replaced.
class RowStore {
 public:
  virtual ~RowStore() = default;

  /// Copies the rows of `keys` as they are now; missing ones are created. Blocks.
  virtual void fetch(std::span<const Key> keys,              // [n]
                     std::span<std::byte* const> rows) = 0;  // [n] of [row_bytes], out

  /// As fetch, but a row that is in registered memory (Table::register_blocks) is not copied:
  /// rows[i] becomes its address. It may be read there until the row is put.
  virtual void locate(std::span<const Key> keys,     // [n]
                      std::span<std::byte*> rows) {  // [n] of [row_bytes], in and out
    fetch(keys, rows);
  }

  /// Replaces the rows of `keys`; missing ones are created. Each row has its own key in its header,
  /// and keeps the header's last step and count, as if the cache's updates had been made here. The
  /// rows are in all snapshots that begin later (except for rows that were never updated), and in
  /// none that has begun. `step`, from 1 to kMaxStep, is the step that puts. Blocks.
  virtual void put(std::int64_t step,
                   std::span<const Key> keys,                    // [n]
                   std::span<const std::byte* const> rows) = 0;  // [n] of [row_bytes]
};

}  // namespace satrap::table
