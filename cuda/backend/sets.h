#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "satrap/backend/cache_size.h"

namespace satrap::backend {

inline constexpr int kWays = static_cast<int>(CacheSize::kWays);
static_assert(kWays == 32, "one lane of a warp per way");

/// The set of a tag; monotonic, so that tags in order are grouped by set.
__device__ inline std::uint64_t set_of(std::uint64_t tag, std::int64_t num_sets) {
  return __umul64hi(tag, static_cast<std::uint64_t>(num_sets));
}

/// One byte of the tag that does not choose the set: 32 bytes instead of 256 rule out most ways. 0
/// is an empty way.
__device__ inline std::uint8_t digest_of(std::uint64_t tag) {
  const auto byte = static_cast<std::uint8_t>((tag >> 10 ^ tag) & 0xFFU);
  return byte == 0 ? std::uint8_t{1} : byte;
}

}  // namespace satrap::backend
