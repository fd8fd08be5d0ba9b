#pragma once

#include <cstdint>

namespace satrap::table {

/// The rows of a table that may be evicted. A row's age is the number of steps since its last use.
///
/// Rows are evicted between steps, by groups: the top bits of the mixed id divide the ids into 4096
/// groups, each with its share of the capacity. A group with more rows than its share evicts the
/// oldest, at equal age by ascending id, until it has 1/16 to 3/16 less than its share. So eviction
/// is a function of the batches and of pinned_steps alone, the same for any power of two of shards
/// up to 64; with another number of shards groups are smaller and other rows may be evicted.
struct RowLimits {
  std::int64_t capacity_rows = 0;  // of all shards; 0: any number
  std::int64_t ttl_steps = 0;      // age of eviction, at most 1/16 of it later; 0: never

  /// Rows of a lower age stay whatever the limits are, because steps that use them may not be done.
  /// At most this many steps are in flight at a time. capacity_rows is exceeded while these steps
  /// need more.
  std::int64_t pinned_steps = 1;

  /// An id gets a row once this many steps have used it; until then it is read as zeros, its
  /// gradients are dropped, and only its sightings are counted. Counted ids have the same limits as
  /// rows, separately. An id that is still counted when its row is evicted gets its next row at
  /// once.
  std::int64_t admit_after = 1;

  bool any() const { return capacity_rows > 0 || ttl_steps > 0; }
};

}  // namespace satrap::table
