#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "satrap/backend/views.h"

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

__device__ inline int lane_of_warp() { return static_cast<int>(threadIdx.x % 32); }
__device__ inline int lowest(std::uint32_t lanes) { return __ffs(static_cast<int>(lanes)) - 1; }

/// The high bit of each byte in which the two are equal.
__device__ inline std::uint32_t equal_bytes(std::uint32_t x, std::uint32_t y) {
  constexpr std::uint32_t kLow = 0x7F7F7F7FU;
  const std::uint32_t difference = x ^ y;
  return ~(((difference & kLow) + kLow) | difference | kLow);
}

/// The slot that holds the tag, or -1. Compares the digests of the set, four to a word, and reads
/// only tags whose digest matches.
__device__ inline std::int32_t find(const CacheView& cache, std::uint64_t tag) {
  const std::int64_t first = static_cast<std::int64_t>(set_of(tag, cache.size.num_sets)) * kWays;
  const uint4* digests = reinterpret_cast<const uint4*>(cache.digests + first);
  const uint4 low = digests[0], high = digests[1];
  const std::uint32_t words[kWays / 4] = {low.x,  low.y,  low.z,  low.w,
                                          high.x, high.y, high.z, high.w};
  const std::uint32_t wanted = digest_of(tag) * 0x01010101U;
  std::int32_t slot = -1;
#pragma unroll
  for (int i = 0; i < kWays / 4; ++i) {
    for (std::uint32_t equal = equal_bytes(words[i], wanted); equal != 0; equal &= equal - 1) {
      const std::int64_t candidate = first + 4 * i + lowest(equal) / 8;
      if (cache.tags[candidate] == tag) slot = static_cast<std::int32_t>(candidate);
    }
  }
  return slot;
}

}  // namespace satrap::backend
