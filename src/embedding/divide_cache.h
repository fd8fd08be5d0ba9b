#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "satrap/backend/cache_size.h"
#include "satrap/backend/views.h"

namespace satrap::embedding {

/// What a batch needs of a table group.
struct GroupNeed {
  const RowLayout* layout;
  std::int64_t num_keys;  // distinct
};

struct CacheLimits {
  std::int64_t memory_bytes = 0;           // of the slots in sets, of all groups
  std::int64_t window_bytes_per_slot = 0;  // that looking ahead takes
  std::int64_t max_in_flight = 1;          // batches whose rows are needed at the same time
};

/// The size of each group's cache: the memory is divided in proportion to the bytes that one batch
/// needs of each group, so that every cache holds the rows of the same number of batches. Overflow
/// rows come in addition: for all rows of max_in_flight batches of this size and a quarter where
/// the sets are not several times as large as that, and few where they are. Throws
/// Error(kInvalidConfig), with the arithmetic, if there is no room for one set per group.
std::vector<backend::CacheSize> divide_cache(std::span<const GroupNeed> needs,
                                             const CacheLimits& limits);

/// How many batches to look ahead at: six times as many as the caches hold; at least 2.
std::int64_t batches_to_look_ahead(std::span<const GroupNeed> needs,
                                   std::span<const backend::CacheSize> sizes);

/// The window of a group for so many batches: with room for batches a quarter larger than this one,
/// of 4 bytes per key, and a directory of two keys for each slot of the cache, of 16 bytes each.
/// Batches of six caches and a quarter have 7.5 keys per slot.
inline constexpr std::int64_t kWindowBytesPerSlot = 2 * 16 + 30;
backend::WindowSize window_size(const GroupNeed& need,
                                const backend::CacheSize& size,
                                std::int64_t look_ahead);

}  // namespace satrap::embedding
