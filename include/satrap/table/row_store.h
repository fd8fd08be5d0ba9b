#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "satrap/core/ids.h"

namespace satrap::table {

/// Whole rows by key, headers included: what a cache of rows is put in front of. Implemented over
/// tables of this process (TableRowStore) and over shards (ps::ShardClient).
///
/// Thread-safe. `keys` ascend and are unique; they may be of several tables, and empty. Row u has
/// RowLayout::row_bytes of its key's table. Calls stand in no order with steps that are under way.
/// After an Error, rows of a fetch are worth nothing, and some of a put may have been taken.
class RowStore {
 public:
  virtual ~RowStore() = default;

  /// Copies the rows of `keys` as they are now; missing ones are created. Blocks.
  virtual void fetch(std::span<const Key> keys,              // [n]
                     std::span<std::byte* const> rows) = 0;  // [n] of [row_bytes], out

  /// Replaces the rows of `keys`; missing ones are created. Each row has its own key in its header,
  /// and keeps the last step and the count that stand there: what a cache has done to a row is as
  /// if it had been done here. The rows are in all snapshots that begin later (but for rows that
  /// never were updated), and in none that has begun. `step`, from 1 to kMaxStep, is the one that
  /// puts. Blocks.
  virtual void put(std::int64_t step,
                   std::span<const Key> keys,                    // [n]
                   std::span<const std::byte* const> rows) = 0;  // [n] of [row_bytes]
};

}  // namespace satrap::table
