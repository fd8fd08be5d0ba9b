#include <algorithm>

#include "src/dense/ops.h"
#include "src/dense/simd.h"

// The interaction of one example is a product of tiny matrices (27 vectors of 16 for Criteo): too
// small for a BLAS call each. The vectors of the example are copied into `work`, padded with zeros
// to whole Simd, and multiplied four at a time from registers.

namespace satrap::dense {
namespace {

std::int64_t padded(std::int64_t n) { return (n + kSimdFloats - 1) / kSimdFloats * kSimdFloats; }

constexpr std::int64_t kTile = 4;  // vectors whose products are in registers at once

std::int64_t tiled(std::int64_t n) { return (n + kTile - 1) / kTile * kTile; }

struct Shape {
  std::int64_t n, width, n_padded, width_padded;
  Shape(std::int64_t num_vectors, std::int64_t vector_width)
      : n(num_vectors),
        width(vector_width),
        n_padded(padded(num_vectors)),
        width_padded(padded(vector_width)) {}
};

const float* vector_of(ConstMatrix first,
                       ConstMatrix rest,
                       std::int64_t width,
                       std::int64_t r,
                       std::int64_t i) {
  const std::int64_t has_first = first.cols > 0 ? 1 : 0;
  return i < has_first ? first.row(r) : rest.row(r) + (i - has_first) * width;
}

// acc[t] = sum over k of a[t, k] * b[k, 0..15], for kTile rows of a.
inline void multiply_tile(const float* a,
                          std::int64_t a_stride,
                          const float* b,
                          std::int64_t b_stride,
                          std::int64_t k,
                          Simd (&acc)[kTile]) {
  for (Simd& v : acc) v = Simd{};
  for (std::int64_t i = 0; i < k; ++i) {
    const Simd right = load(b + i * b_stride);
    for (std::int64_t t = 0; t < kTile; ++t) acc[t] += a[t * a_stride + i] * right;
  }
}

}  // namespace

std::int64_t dot_interaction_work(std::int64_t n, std::int64_t width) {
  const Shape s(n, width);
  return tiled(n) * s.width_padded + s.width_padded * s.n_padded + tiled(n) * s.n_padded +
         n * (n - 1) / 2 + kSimdFloats;
}

void dot_interaction(ConstMatrix first,
                     ConstMatrix rest,
                     std::int64_t width,
                     float* work,
                     Matrix out) {
  const Shape s((first.cols > 0 ? 1 : 0) + rest.cols / width, width);
  float* const z = work;                                     // [tiled(n), width_padded]
  float* const zt = z + tiled(s.n) * s.width_padded;         // [width, n_padded]
  float* const products = zt + s.width_padded * s.n_padded;  // [tiled(n), n_padded]
  float* const line = products + tiled(s.n) * s.n_padded;  // the triangle of an example, and slack
  std::fill(work, products, 0.0F);
  for (std::int64_t r = 0; r < rest.rows; ++r) {
    for (std::int64_t i = 0; i < s.n; ++i) {
      const float* v = vector_of(first, rest, width, r, i);
      for (std::int64_t k = 0; k < width; ++k) {
        z[i * s.width_padded + k] = v[k];
        zt[k * s.n_padded + i] = v[k];
      }
    }
    for (std::int64_t i = 0; i < s.n; i += kTile) {
      for (std::int64_t j = 0; j < i + kTile - 1; j += kSimdFloats) {
        Simd acc[kTile];
        multiply_tile(z + i * s.width_padded, s.width_padded, zt + j, s.n_padded, width, acc);
        for (std::int64_t t = 0; t < kTile; ++t) store(products + (i + t) * s.n_padded + j, acc[t]);
      }
    }
    // Copies whole Simd: what a row writes past its end is overwritten by the rows after it.
    float* target = line;
    for (std::int64_t i = 1; i < s.n; target += i++) {
      for (std::int64_t j = 0; j < i; j += kSimdFloats) {
        store(target + j, load(products + i * s.n_padded + j));
      }
    }
    std::copy_n(line, s.n * (s.n - 1) / 2, out.row(r));
  }
}

void dot_interaction_backward(ConstMatrix first,
                              ConstMatrix rest,
                              std::int64_t width,
                              ConstMatrix dout,
                              float* work,
                              Matrix dfirst,
                              Matrix drest) {
  const std::int64_t has_first = first.cols > 0 ? 1 : 0;
  const Shape s(has_first + rest.cols / width, width);
  float* const z = work;                              // [n, width_padded]
  float* const symmetric = z + s.n * s.width_padded;  // [tiled(n), n_padded], zero diagonal
  std::fill_n(work, s.n * s.width_padded + tiled(s.n) * s.n_padded, 0.0F);
  for (std::int64_t r = 0; r < rest.rows; ++r) {
    const float* d = dout.row(r);
    for (std::int64_t i = 0; i < s.n; ++i) {
      std::copy_n(vector_of(first, rest, width, r, i), width, z + i * s.width_padded);
      for (std::int64_t j = 0; j < i; ++j) {
        symmetric[i * s.n_padded + j] = *d;
        symmetric[j * s.n_padded + i] = *d++;
      }
    }
    for (std::int64_t i = 0; i < s.n; i += kTile) {
      for (std::int64_t k = 0; k < width; k += kSimdFloats) {
        Simd acc[kTile];
        multiply_tile(symmetric + i * s.n_padded, s.n_padded, z + k, s.width_padded, s.n, acc);
        const std::int64_t count = std::min(kSimdFloats, width - k);
        for (std::int64_t t = 0; t < kTile && i + t < s.n; ++t) {
          const std::int64_t row = i + t;
          if (row < has_first) {
            float* target = dfirst.row(r) + k;
            for (std::int64_t l = 0; l < count; ++l) target[l] += acc[t][l];
            continue;
          }
          float* target = drest.row(r) + (row - has_first) * width + k;
          if (count == kSimdFloats) {
            store(target, acc[t]);
          } else {
            for (std::int64_t l = 0; l < count; ++l) target[l] = acc[t][l];
          }
        }
      }
    }
  }
}

}  // namespace satrap::dense
