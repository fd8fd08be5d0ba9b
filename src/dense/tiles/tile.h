#pragma once

// This folder computes products in tiles of vector registers, with the instructions of several
// kinds of CPU. A source compiles these headers for one kind, which it describes as `Cpu`:
//   Vector, kVector  a register of floats, and how many it has
//   kTileRows        rows of a tile whose columns take 1, 2, ... registers; the first is the most
//   kWidest          registers of a tile's columns
//   kWidestOfStrips  the same where the left operand is copied
//   multiply_add     sums + left * right, for one register of sums
//   load_part, store_part  the first of a register, less than kVector; the others are 0
// An operand's element is a float, or two numbers of bf16 in the bits of a float.
//
// Nothing here may be an inline function of other headers: the linker keeps one copy of those, and
// it must run on every CPU. So everything is in an unnamed namespace.

#include <cstdint>
#include <utility>

#include "src/dense/product_tiles.h"

namespace satrap::dense {
namespace {

/// A tile of the result, `cols` wide, of as many rows as the kernel has.
struct Tile {
  float* data;
  std::int64_t stride, cols;
  bool transposed;  // element (r, c) is data[c * stride + r], and the bias is of rows
  ProductEnd end;   // its bias begins with the tile's
};

float finish(float sum, const ProductEnd& end, float before, std::int64_t i) {
  if (end.accumulate) sum += before;
  if (end.bias != nullptr) sum += end.bias[i];
  return end.relu && sum < 0.0F ? 0.0F : sum;
}

// Finishes a transposed tile whose sums are in `sums`, [rows, width].
[[maybe_unused, gnu::noinline]] void finish_transposed(const Tile& tile,
                                                       const float* sums,
                                                       std::int64_t rows,
                                                       std::int64_t width) {
  for (std::int64_t c = 0; c < tile.cols; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) {
      float& out = tile.data[c * tile.stride + r];
      out = finish(sums[r * width + c], tile.end, out, r);
    }
  }
}

/// Parts of registers, element by element.
template <class Vector, std::int64_t kVector>
struct Parts {
  static Vector load_part(const float* p, std::int64_t count) {
    float all[kVector] = {};
    for (std::int64_t i = 0; i < count; ++i) all[i] = p[i];
    Vector v;
    __builtin_memcpy(&v, all, sizeof(v));
    return v;
  }
  static void store_part(float* p, std::int64_t count, Vector v) {
    float all[kVector];
    __builtin_memcpy(all, &v, sizeof(v));
    for (std::int64_t i = 0; i < count; ++i) p[i] = all[i];
  }
};

template <class Cpu>
struct Tiles {
  using Vector = typename Cpu::Vector;
  static constexpr std::int64_t kVector = Cpu::kVector;
  static constexpr std::int64_t kVectors = sizeof(Cpu::kTileRows) / sizeof(Cpu::kTileRows[0]);

  static Vector load(const float* p) {
    Vector v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
  }
  static void store(float* p, Vector v) { __builtin_memcpy(p, &v, sizeof(v)); }

  __attribute__((always_inline)) static inline void finish_vector(Vector sum,
                                                                  const ProductEnd& end,
                                                                  std::int64_t c,
                                                                  float* row) {
    if (end.accumulate) sum += load(row + c);
    if (end.bias != nullptr) sum += load(end.bias + c);
    store(row + c, end.relu ? (sum < Vector{} ? Vector{} : sum) : sum);
  }

  // Finishes a tile with fewer columns than registers have; its sums are in `sums`, [rows, width].
  // A call while they are in registers would move all of them to memory, in the loop too.
  [[gnu::noinline]] static void finish_narrow(const Tile& tile,
                                              const float* sums,
                                              std::int64_t rows,
                                              std::int64_t width) {
    for (std::int64_t r = 0; r < rows; ++r, sums += width) {
      float* const out = tile.data + r * tile.stride;
      std::int64_t c = 0;
      for (; c + kVector <= tile.cols; c += kVector)
        finish_vector(load(sums + c), tile.end, c, out);
      if (c == tile.cols) continue;
      const std::int64_t count = tile.cols - c;
      Vector sum = load(sums + c);
      if (tile.end.accumulate) sum += Cpu::load_part(out + c, count);
      if (tile.end.bias != nullptr) sum += Cpu::load_part(tile.end.bias + c, count);
      if (tile.end.relu) sum = sum < Vector{} ? Vector{} : sum;
      Cpu::store_part(out + c, count, sum);
    }
  }

  /// Rows x (Vectors * kVector) sums over `depth` in registers: a[r * row_step + k * col_step]
  /// times b[k * b_step + c]. Not instrumented by sanitizers, like a library; Gemm checks the
  /// shapes.
  template <std::int64_t Rows, std::int64_t Vectors>
  __attribute__((no_sanitize("address", "thread", "undefined"))) static void multiply(
      const float* a,
      std::int64_t row_step,
      std::int64_t col_step,
      const float* b,
      std::int64_t b_step,
      std::int64_t depth,
      const Tile& tile) {
    Vector sums[Rows][Vectors] = {};
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < depth; ++k) {
      Vector right[Vectors];
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < Vectors; ++v) right[v] = load(b + v * kVector);
#pragma GCC unroll 16
      for (std::int64_t r = 0; r < Rows; ++r) {
        const float left = a[r * row_step];
#pragma GCC unroll 4
        for (std::int64_t v = 0; v < Vectors; ++v) {
          sums[r][v] = Cpu::multiply_add(sums[r][v], left, right[v]);
        }
      }
      a += col_step;
      b += b_step;
    }
    if (tile.transposed || tile.cols != Vectors * kVector) {
      float rows[Rows * Vectors * kVector];
#pragma GCC unroll 16
      for (std::int64_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
        for (std::int64_t v = 0; v < Vectors; ++v) {
          store(rows + (r * Vectors + v) * kVector, sums[r][v]);
        }
      }
      return tile.transposed ? finish_transposed(tile, rows, Rows, Vectors * kVector)
                             : finish_narrow(tile, rows, Rows, Vectors * kVector);
    }
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < Rows; ++r) {
      float* const out = tile.data + r * tile.stride;
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < Vectors; ++v) {
        finish_vector(sums[r][v], tile.end, v * kVector, out);
      }
    }
  }

  using Kernel = void (*)(const float* a,
                          std::int64_t row_step,
                          std::int64_t col_step,
                          const float* b,
                          std::int64_t b_step,
                          std::int64_t depth,
                          const Tile& tile);
  struct OfRows {
    Kernel kernels[Cpu::kTileRows[0]];
  };
  template <std::int64_t Vectors, std::size_t... R>
  static constexpr OfRows of_rows(std::index_sequence<R...>) {
    return {{multiply<static_cast<std::int64_t>(R) + 1, Vectors>...}};
  }
  struct OfVectors {
    OfRows rows[kVectors];
  };
  template <std::size_t... V>
  static constexpr OfVectors of_vectors(std::index_sequence<V...>) {
    return {{of_rows<static_cast<std::int64_t>(V) + 1>(
        std::make_index_sequence<static_cast<std::size_t>(Cpu::kTileRows[V])>())...}};
  }

  /// The one for tiles of so many rows, and columns of so many registers.
  static Kernel kernel(std::int64_t rows, std::int64_t vectors) {
    static constexpr OfVectors kAll = of_vectors(std::make_index_sequence<kVectors>());
    return kAll.rows[vectors - 1].kernels[rows - 1];
  }
};

}  // namespace
}  // namespace satrap::dense
