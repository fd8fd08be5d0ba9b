#pragma once

#include "src/dense/tiles/tile.h"
#include "src/dense/transpose.h"

namespace satrap::dense {
namespace {

constexpr std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

/// Copies of operands in the order in which tiles read them.
template <class Cpu>
struct Copies : Tiles<Cpu> {
  using typename Tiles<Cpu>::Vector;
  using Tiles<Cpu>::kVector, Tiles<Cpu>::load, Tiles<Cpu>::store;

  static constexpr std::int64_t kStrip = Cpu::kTileRows[Cpu::kWidestOfStrips - 1];

  /// Copies the first `cols` columns of `depth` rows into `panel`, [depth, width], with zeros up to
  /// `width`, less than a register away.
  static void copy_panel(const ProductOperand& b,
                         std::int64_t depth,
                         std::int64_t cols,
                         std::int64_t width,
                         float* __restrict panel) {
    if (b.col_step == 1) {
      copy_rows(b, depth, cols, width, panel);
      return;
    }
    const std::int64_t whole_depth = depth / kVector * kVector;
    for (std::int64_t c = 0; c < width; c += kVector) {
      const std::int64_t count = least(kVector, cols - c);
      const float* const from = b.data + c * b.col_step;
      for (std::int64_t r = 0; r < whole_depth; r += kVector) {
        Vector square[kVector];
#pragma GCC unroll 16
        for (std::int64_t i = 0; i < kVector; ++i) {
          square[i] = i < count ? load(from + i * b.col_step + r) : Vector{};
        }
        transpose<static_cast<std::size_t>(kVector)>(square);
#pragma GCC unroll 16
        for (std::int64_t i = 0; i < kVector; ++i) store(panel + (r + i) * width + c, square[i]);
      }
      for (std::int64_t r = whole_depth; r < depth; ++r) {
        for (std::int64_t i = 0; i < kVector; ++i) {
          panel[r * width + c + i] = i < count ? from[i * b.col_step + r] : 0.0F;
        }
      }
    }
  }

  static void copy_rows(const ProductOperand& b,
                        std::int64_t depth,
                        std::int64_t cols,
                        std::int64_t width,
                        float* __restrict panel) {
    const std::int64_t whole = cols / kVector * kVector;
    for (std::int64_t r = 0; r < depth; ++r) {
      const float* const row = b.data + r * b.row_step;
      float* const to = panel + r * width;
      for (std::int64_t c = 0; c < whole; c += kVector) store(to + c, load(row + c));
      if (whole < width) store(to + whole, Cpu::load_part(row + whole, cols - whole));
    }
  }

  /// Copies the first `rows` rows of `depth` columns, which are side by side in a column, in strips
  /// of `height` rows: [rows / height, depth, height]. In place, the columns of a tile are one
  /// stride apart, and a stride that is a power of two maps them to few lines of the caches.
  static void copy_strips(const ProductOperand& a,
                          std::int64_t rows,
                          std::int64_t depth,
                          std::int64_t height,
                          float* __restrict strips) {
    if (height == kStrip) {
      copy_strips_of<kStrip>(a, rows, depth, kStrip, strips);
    } else {
      copy_strips_of<0>(a, rows, depth, height, strips);
    }
  }

  // With a height that is known here, unless it is 0.
  template <std::int64_t Height>
  static void copy_strips_of(const ProductOperand& a,
                             std::int64_t rows,
                             std::int64_t depth,
                             std::int64_t height,
                             float* __restrict strips) {
    constexpr std::int64_t kAtOnce = 8;  // strips: where they are written stays in the near cache
    for (std::int64_t first = 0; first < rows; first += kAtOnce * height) {
      const std::int64_t end = least(rows, first + kAtOnce * height);
      for (std::int64_t k = 0; k < depth; ++k) {
        const float* const column = a.data + k * a.col_step;
        std::int64_t r = first;
        if constexpr (Height > 0) {
          for (; r + Height <= end; r += Height) {
            __builtin_memcpy(strips + r * depth + k * Height, column + r, Height * sizeof(float));
          }
        }
        for (; r < end; r += height) {
          float* const to = strips + r * depth + k * height;
          const std::int64_t count = least(height, rows - r);
          for (std::int64_t i = 0; i < count; ++i) to[i] = column[r + i];
        }
      }
    }
  }
};

}  // namespace
}  // namespace satrap::dense
