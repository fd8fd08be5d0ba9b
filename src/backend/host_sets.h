#pragma once

#include <cstdint>

#include "satrap/backend/views.h"

/// Sets of a cache, as in cuda/backend/sets.h.
namespace satrap::backend {

inline std::int64_t host_set_of(std::uint64_t tag, std::int64_t num_sets) {
  return static_cast<std::int64_t>(
      (static_cast<unsigned __int128>(tag) * static_cast<std::uint64_t>(num_sets)) >> 64);
}

inline std::uint8_t host_digest_of(std::uint64_t tag) {
  const auto byte = static_cast<std::uint8_t>((tag >> 10 ^ tag) & 0xFFU);
  return byte == 0 ? std::uint8_t{1} : byte;
}

/// The slot that holds the tag, or -1.
inline std::int64_t host_find(const CacheView& cache, std::uint64_t tag) {
  const std::int64_t first = host_set_of(tag, cache.size.num_sets) * CacheSize::kWays;
  for (std::int64_t slot = first; slot < first + CacheSize::kWays; ++slot) {
    if (cache.digests[slot] == host_digest_of(tag) && cache.tags[slot] == tag) return slot;
  }
  return -1;
}

}  // namespace satrap::backend
