#pragma once

#include <cstdint>

namespace satrap::table {

/// Which rows of a table may go. A row's age is the number of steps since one has asked for it.
///
/// Rows go between steps, by groups: the ids are divided into 4096 by the top bits of the mixed id,
/// each with its share of the capacity. A group with more rows than that loses the oldest ones,
/// those of the same age by ascending id, until it has 1/16 to 3/16 less than its share. So which
/// rows go is a function of the batches and of pinned_steps alone, the same on any power of two of
/// shards up to 64; with another number of shards groups are smaller and others may go.
struct RowLimits {
  std::int64_t capacity_rows = 0;  // of all shards; 0: any number
  std::int64_t ttl_steps = 0;      // rows of this age go, at most 1/16 of it later; 0: never

  /// Rows of a lower age stay whatever the limits are: steps that have asked for them may not be
  /// done. At most that many steps are under way at a time. So capacity_rows is exceeded while
  /// these steps need more.
  std::int64_t pinned_steps = 1;

  /// An id gets a row when so many steps have asked for it; until then it is read as zeros, its
  /// gradients are dropped, and no more than its sightings is remembered. Ids that are remembered
  /// are under the same limits as rows, for themselves. One whose row has gone while it is still
  /// remembered gets the next row at once.
  std::int64_t admit_after = 1;

  bool any() const { return capacity_rows > 0 || ttl_steps > 0; }
};

}  // namespace satrap::table
