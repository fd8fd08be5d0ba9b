#pragma once

#include <cstddef>
#include <utility>

namespace satrap::dense {
namespace {  // compiled for several kinds of CPU: src/dense/tiles/tile.h

// Exchanges the off-diagonal blocks of 2 x 2 blocks of D elements each, in rows `low` and `high` of
// a square that are D apart.
template <std::size_t D, class Vector, std::size_t... E>
__attribute__((always_inline)) inline void exchange_blocks(Vector& low,
                                                           Vector& high,
                                                           std::index_sequence<E...>) {
  constexpr std::size_t kSize = sizeof...(E);
  const Vector a = low, b = high;
  low = __builtin_shufflevector(a, b, ((E & D) != 0 ? kSize + E - D : E)...);
  high = __builtin_shufflevector(a, b, ((E & D) != 0 ? kSize + E : E + D)...);
}

/// Rows of a square of vectors of N elements, a power of two, become its columns.
template <std::size_t N, std::size_t D = N / 2, class Vector>
__attribute__((always_inline)) inline void transpose(Vector (&square)[N]) {
#pragma GCC unroll 16
  for (std::size_t i = 0; i < N; ++i) {
    if ((i & D) == 0) {
      exchange_blocks<D>(square[i], square[i + D], std::make_index_sequence<N>());
    }
  }
  if constexpr (D > 1) transpose<N, D / 2>(square);
}

}  // namespace
}  // namespace satrap::dense
