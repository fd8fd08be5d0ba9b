#pragma once

#include <cstdint>
#include <span>

#include "satrap/core/ids.h"

namespace satrap {

/// One id of a batch in the plan's sort.
struct KeyOccurrence {
  Key key;
  std::uint32_t position;  // number of the id within the batch
  std::uint32_t offset;    // of its vector in the pooled output, in floats
};
static_assert(sizeof(KeyOccurrence) == 16);

/// Sorts by key, keeping the order of equal keys: a radix sort, least significant digit first, over
/// just enough of the highest differing bits to distinguish most keys; then the few runs that agree
/// in those bits are sorted by the rest. O(n) for mixed keys, never worse than O(n)
/// passes over 64 bits. Allocates nothing; `scratch` has the size of `items` and ends with
/// undefined content.
void sort_by_key(std::span<KeyOccurrence> items, std::span<KeyOccurrence> scratch);

/// Number of distinct keys of sorted items, and of distinct values of key >> group_shift (the
/// partitions they belong to).
struct DistinctCounts {
  std::int64_t keys = 0;
  std::int64_t groups = 0;
};
DistinctCounts count_distinct(std::span<const KeyOccurrence> sorted, int group_shift);

}  // namespace satrap
