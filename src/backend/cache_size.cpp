#include "satrap/backend/cache_size.h"

#include "satrap/core/error.h"

namespace satrap::backend {

std::int64_t CacheSize::bytes(const RowLayout& layout) const {
  return total_slots() * layout.stride_bytes + num_slots() * kBookkeepingBytes;
}

CacheSize CacheSize::fit(std::int64_t memory_bytes,
                         const RowLayout& layout,
                         std::int64_t overflow_rows) {
  const std::int64_t set_bytes = kWays * (layout.stride_bytes + kBookkeepingBytes);
  const std::int64_t overflow_bytes = overflow_rows * layout.stride_bytes;
  CacheSize size;
  size.overflow_rows = overflow_rows;
  size.num_sets = (memory_bytes - overflow_bytes) / set_bytes;
  if (memory_bytes < overflow_bytes + set_bytes) {
    throw Error(
        ErrorCode::kInvalidConfig,
        concat("a device cache of ", memory_bytes, " bytes is too small: ", overflow_rows,
               " overflow rows of ", layout.stride_bytes, " bytes take ", overflow_bytes,
               ", and the smallest cache is one set of ", kWays, " rows, ", set_bytes, " bytes"));
  }
  if (size.total_slots() > kMaxSlots) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("a device cache of ", memory_bytes, " bytes has room for ",
                       size.total_slots(), " rows of ", layout.stride_bytes, " bytes; at most ",
                       kMaxSlots, " can be numbered"));
  }
  return size;
}

}  // namespace satrap::backend
