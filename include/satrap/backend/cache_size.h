#pragma once

#include <cstdint>

#include "satrap/kernels/row_layout.h"

namespace satrap::backend {

/// The most weights of a row in device memory. check_dim throws Error(kInvalidConfig) unless 1 <=
/// dim <= kMaxDim.
inline constexpr std::int64_t kMaxDim = 1024;
void check_dim(const RowLayout& layout);

/// Slots of a device cache: sets of kWays ways, then overflow rows, which hold a batch's rows whose
/// sets are full of pinned rows.
struct CacheSize {
  static constexpr std::int64_t kWays = 32;
  /// Per slot, in addition to its row: tag 8, last needed 4, frequency 4, next use 4, digest 1,
  /// dirty 1.
  static constexpr std::int64_t kBookkeepingBytes = 22;
  /// Slot numbers are int32.
  static constexpr std::int64_t kMaxSlots = std::int64_t{0x7FFFFFFF};

  std::int64_t num_sets = 0;
  std::int64_t overflow_rows = 0;

  constexpr std::int64_t num_slots() const { return num_sets * kWays; }
  constexpr std::int64_t total_slots() const { return num_slots() + overflow_rows; }
  /// Excludes the alignment of the parts of the cache's arena: less than 2 KiB.
  std::int64_t bytes(const RowLayout& layout) const;

  /// The largest cache of at most memory_bytes. Throws Error(kInvalidConfig) with the arithmetic
  /// if that is less than one set, or more slots than slot numbers.
  static CacheSize fit(std::int64_t memory_bytes,
                       const RowLayout& layout,
                       std::int64_t overflow_rows);
};

}  // namespace satrap::backend
