#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

namespace satrap {

/// A row width known at compile time. Kernels take the width as a template argument `Dim dim`,
/// which is either this or a plain int64_t, and write ordinary loops over it.
template <std::int64_t kDim>
using FixedDim = std::integral_constant<std::int64_t, kDim>;

/// A dim as stored in memory: whole vectors of 4.
constexpr std::int64_t padded_dim(std::int64_t dim) { return (dim + 3) / 4 * 4; }

/// Calls function(dim) with FixedDim for the common widths and with int64_t for all others. Called
/// outside the loop over rows.
template <class Function>
decltype(auto) with_dim(std::int64_t dim, Function&& function) {
  switch (dim) {
    case 8:
      return function(FixedDim<8>{});
    case 16:
      return function(FixedDim<16>{});
    case 32:
      return function(FixedDim<32>{});
    case 64:
      return function(FixedDim<64>{});
    default:
      return function(dim);
  }
}

/// Prefetches the cache lines of [address, address + bytes); never faults.
inline constexpr std::int64_t kCacheLine = 64;
inline void prefetch_read(const void* address, std::int64_t bytes) {
  const auto* p = static_cast<const char*>(address);
  for (std::int64_t offset = 0; offset < bytes; offset += kCacheLine)
    __builtin_prefetch(p + offset);
  __builtin_prefetch(p + bytes - 1);
}
inline void prefetch_write(const void* address, std::int64_t bytes) {
  const auto* p = static_cast<const char*>(address);
  for (std::int64_t offset = 0; offset < bytes; offset += kCacheLine) {
    __builtin_prefetch(p + offset, 1);
  }
  __builtin_prefetch(p + bytes - 1, 1);
}

}  // namespace satrap
