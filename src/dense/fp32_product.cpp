#include "src/dense/fp32_product.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

// CMakeLists.txt compiles this file with -O3 in every build, and each multiplication and its
// addition as one fma.

namespace satrap::dense {
namespace {

// Registers of a tile: 24 of 32 (16 floats each), 12 of 16 (8 floats), or, on ARM, 20 of 32 (4
// floats): there each factor of the left operand takes a register too, and with 6 rows GCC 12
// spills sums to the stack.
#if defined(__AVX512F__)
constexpr std::int64_t kVector = 16, kVectors = 4, kTileRows = 6;
#elif defined(__aarch64__)
constexpr std::int64_t kVector = 4, kVectors = 4, kTileRows = 5;
#else
constexpr std::int64_t kVector = 8, kVectors = 2, kTileRows = 6;
#endif
constexpr std::int64_t kPanelCols = kVector * kVectors;
constexpr std::int64_t kPanelRows = 512;  // a panel is in the second-level cache

using Vector = float __attribute__((vector_size(kVector * sizeof(float)), may_alias));
struct __attribute__((packed, may_alias)) VectorInMemory {  // as SimdInMemory
  Vector value;
};

Vector load(const float* p) { return reinterpret_cast<const VectorInMemory*>(p)->value; }
void store(float* p, Vector v) { reinterpret_cast<VectorInMemory*>(p)->value = v; }

/// Element (r, c) is data[r * row_step + c * col_step].
struct Operand {
  const float* data;
  std::int64_t row_step, col_step;
  Operand(ConstMatrix m, bool transpose)
      : data(m.data), row_step(transpose ? 1 : m.stride), col_step(transpose ? m.stride : 1) {}
};

/// A tile of the result: `cols` <= kVectors * kVector of as many rows as the kernel has.
struct Tile {
  float* data;
  std::int64_t stride, cols;
  bool accumulate;
  const float* bias;
  bool relu;
};

inline __attribute__((always_inline)) Vector finish(Vector sum,
                                                    const Tile& tile,
                                                    const float* before,
                                                    const float* bias) {
  if (tile.accumulate) sum += load(before);
  if (bias != nullptr) sum += load(bias);
  return tile.relu ? (sum < Vector{} ? Vector{} : sum) : sum;
}

// Finishes a row of a tile that is narrower than its vectors: the sums are in `row`, followed by
// padding.
void finish_part(const Tile& tile, float* out, const float* row) {
  for (std::int64_t c = 0; c < tile.cols; ++c) {
    float sum = row[c];
    if (tile.accumulate) sum += out[c];
    if (tile.bias != nullptr) sum += tile.bias[c];
    out[c] = tile.relu && sum < 0.0F ? 0.0F : sum;
  }
}

/// Rows x (Vectors * kVector) sums over `depth` in registers. `panel`: [depth, Vectors * kVector].
/// Not instrumented by sanitizers, like a library; Gemm checks the shapes.
template <std::int64_t Rows, std::int64_t Vectors>
__attribute__((no_sanitize("address", "thread", "undefined"))) void multiply_tile(
    const float* a,
    std::int64_t row_step,
    std::int64_t col_step,
    const float* panel,
    std::int64_t depth,
    const Tile& tile) {
  Vector sums[Rows][Vectors] = {};
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < depth; ++k) {
    Vector right[Vectors];
#pragma GCC unroll 4
    for (std::int64_t v = 0; v < Vectors; ++v) {
      right[v] = load(panel + v * kVector);
    }
#pragma GCC unroll 6
    for (std::int64_t r = 0; r < Rows; ++r) {
      const float left = a[r * row_step];
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < Vectors; ++v) sums[r][v] += left * right[v];
    }
    a += col_step;
    panel += Vectors * kVector;
  }
  const bool whole = tile.cols == Vectors * kVector;
#pragma GCC unroll 6
  for (std::int64_t r = 0; r < Rows; ++r) {
    float* const out = tile.data + r * tile.stride;
    if (!whole) {
      float row[Vectors * kVector];
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < Vectors; ++v) store(row + v * kVector, sums[r][v]);
      finish_part(tile, out, row);
      continue;
    }
#pragma GCC unroll 4
    for (std::int64_t v = 0; v < Vectors; ++v) {
      const float* const bias = tile.bias == nullptr ? nullptr : tile.bias + v * kVector;
      store(out + v * kVector, finish(sums[r][v], tile, out + v * kVector, bias));
    }
  }
}

using Kernel = void (*)(const float* a,
                        std::int64_t row_step,
                        std::int64_t col_step,
                        const float* panel,
                        std::int64_t depth,
                        const Tile& tile);

template <std::int64_t Vectors, std::size_t... R>
constexpr std::array<Kernel, kTileRows> kernels_of(std::index_sequence<R...>) {
  return {multiply_tile<static_cast<std::int64_t>(R) + 1, Vectors>...};
}

/// Indexed by the number of vectors, then by the number of rows.
template <std::size_t... V>
constexpr auto all_kernels(std::index_sequence<V...>) {
  return std::array{
      kernels_of<static_cast<std::int64_t>(V) + 1>(std::make_index_sequence<kTileRows>())...};
}
constexpr auto kKernels = all_kernels(std::make_index_sequence<kVectors>());

/// Rows [first_row, + depth) and columns [first_col, + cols) of b, with zeros up to `width`
/// columns.
void copy_panel(const Operand& b,
                std::int64_t first_row,
                std::int64_t depth,
                std::int64_t first_col,
                std::int64_t cols,
                std::int64_t width,
                float* __restrict panel) {
  const float* const from = b.data + first_row * b.row_step + first_col * b.col_step;
  if (b.col_step == 1) {
    const std::int64_t whole = cols / kVector * kVector;
    for (std::int64_t r = 0; r < depth; ++r) {
      const float* const row = from + r * b.row_step;
      float* const target = panel + r * width;
      for (std::int64_t c = 0; c < whole; c += kVector) store(target + c, load(row + c));
      if (whole == width) continue;
      store(target + whole, Vector{});
      for (std::int64_t c = whole; c < cols; ++c) target[c] = row[c];
    }
    return;
  }
  if (cols < width) std::fill_n(panel, depth * width, 0.0F);
  constexpr std::int64_t kRun =
      64;  // the part of a panel written meanwhile stays in the nearest cache
  for (std::int64_t r0 = 0; r0 < depth; r0 += kRun) {
    const std::int64_t count = std::min(kRun, depth - r0);
    for (std::int64_t c = 0; c < cols; ++c) {
      const float* const run = from + c * b.col_step + r0;
      for (std::int64_t r = 0; r < count; ++r) panel[(r0 + r) * width + c] = run[r];
    }
  }
}

/// Copies rows [first, + depth) of `a`, whose transpose is the left operand, strip by strip:
/// [columns / kTileRows, depth, kTileRows]. In place, a tile's numbers are one stride apart, and a
/// stride that is a power of two maps them to few lines of the caches.
void copy_strips(ConstMatrix a, std::int64_t first, std::int64_t depth, float* __restrict strips) {
  for (std::int64_t r = 0; r < depth; ++r) {
    const float* const row = a.row(first + r);
    float* to = strips + r * kTileRows;
    std::int64_t c = 0;
    for (; c + kTileRows <= a.cols; c += kTileRows, to += depth * kTileRows) {
      std::copy_n(row + c, kTileRows, to);
    }
    std::copy(row + c, row + a.cols, to);
  }
}

}  // namespace

void Fp32Product::multiply(ConstMatrix a,
                           bool transpose_a,
                           ConstMatrix b_matrix,
                           bool transpose_b,
                           Matrix c,
                           const ProductEnd& end) {
  if (panel_.size() == 0) panel_ = AlignedBuffer(kPanelRows * kPanelCols);
  const Operand b(b_matrix, transpose_b);
  const std::int64_t depth = transpose_a ? a.rows : a.cols;
  const std::int64_t strips_size =
      transpose_a ? (c.rows + kTileRows - 1) / kTileRows * kTileRows * std::min(kPanelRows, depth)
                  : 0;
  if (strips_.size() < strips_size) strips_ = AlignedBuffer(strips_size);
  for (std::int64_t k = 0; k == 0 || k < depth; k += kPanelRows) {
    const std::int64_t panel_rows = std::min(kPanelRows, depth - k);
    const bool last = k + panel_rows == depth;
    if (strips_size > 0) copy_strips(a, k, panel_rows, strips_.data());
    for (std::int64_t j = 0; j < c.cols; j += kPanelCols) {
      const std::int64_t cols = std::min(kPanelCols, c.cols - j);
      const std::int64_t vectors = (cols + kVector - 1) / kVector;
      copy_panel(b, k, panel_rows, j, cols, vectors * kVector, panel_.data());
      for (std::int64_t i = 0; i < c.rows; i += kTileRows) {
        const std::int64_t rows = std::min(kTileRows, c.rows - i);
        const Tile tile{c.row(i) + j,
                        c.stride,
                        cols,
                        end.accumulate || k > 0,
                        last && end.bias != nullptr ? end.bias + j : nullptr,
                        last && end.relu};
        const Kernel kernel =
            kKernels[static_cast<std::size_t>(vectors - 1)][static_cast<std::size_t>(rows - 1)];
        if (transpose_a) {
          kernel(strips_.data() + i * panel_rows, 1, kTileRows, panel_.data(), panel_rows, tile);
        } else {
          kernel(a.row(i) + k, a.stride, 1, panel_.data(), panel_rows, tile);
        }
      }
    }
  }
}

}  // namespace satrap::dense
