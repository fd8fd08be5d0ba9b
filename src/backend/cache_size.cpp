#include "satrap/backend/cache_size.h"

#include "satrap/core/error.h"

namespace satrap::backend {

void check_dim(const RowLayout& layout) {
  if (layout.dim >= 1 && layout.dim <= kMaxDim) return;
  throw Error(ErrorCode::kInvalidConfig,
              concat("rows in device memory have 1 to ", kMaxDim, " weights, not ", layout.dim));
}

std::int64_t CacheSize::bytes(const RowLayout& layout) const {
  return total_slots() * layout.device_stride + num_slots() * kBookkeepingBytes;
}

CacheSize CacheSize::fit(std::int64_t memory_bytes,
                         const RowLayout& layout,
                         std::int64_t overflow_rows) {
  check_dim(layout);
  const std::int64_t set_bytes = kWays * (layout.device_stride + kBookkeepingBytes);
  const std::int64_t overflow_bytes = overflow_rows * layout.device_stride;
  CacheSize size;
  size.overflow_rows = overflow_rows;
  size.num_sets = (memory_bytes - overflow_bytes) / set_bytes;
  if (memory_bytes < overflow_bytes + set_bytes) {
    throw Error(
        ErrorCode::kInvalidConfig,
        concat("a device cache of ", memory_bytes, " bytes is too small: ", overflow_rows,
               " overflow rows of ", layout.device_stride, " bytes take ", overflow_bytes,
               ", and the smallest cache is one set of ", kWays, " rows, ", set_bytes, " bytes"));
  }
  if (size.total_slots() > kMaxSlots) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("a device cache of ", memory_bytes, " bytes has room for ",
                       size.total_slots(), " rows of ", layout.device_stride, " bytes; at most ",
                       kMaxSlots, " can be numbered"));
  }
  return size;
}

}  // namespace satrap::backend
