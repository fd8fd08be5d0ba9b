#include <algorithm>

#include "src/dense/ops.h"
#include "src/dense/simd.h"
#include "src/dense/transpose.h"

// The interaction of one example is a product of tiny matrices (27 vectors of 16 for Criteo): too
// small for a BLAS call each. The vectors of the example are copied into `work`, padded with zeros
// to whole Simd, and multiplied four at a time from registers. CMakeLists.txt compiles each
// multiplication and its addition as one fma.

namespace satrap::dense {
namespace {

std::int64_t padded(std::int64_t n) { return (n + kSimdFloats - 1) / kSimdFloats * kSimdFloats; }

constexpr std::int64_t kTile = 4;  // vectors whose products are in registers at once

/// Memory for one example, parts of `work` that begin with zeros, of which the padding stays.
struct Work {
  std::int64_t n, width, n_padded, width_padded;
  float* vectors;     // [n_padded, width_padded]
  float* transposed;  // [width_padded, n_padded]; backward: the triangle, [n_padded, n_padded]
  float* products;    // [n_padded, n_padded]
  float* line;        // the triangle of an example row after row, and slack

  Work(std::int64_t num_vectors, std::int64_t vector_width, float* work)
      : n(num_vectors),
        width(vector_width),
        n_padded(padded(num_vectors)),
        width_padded(padded(vector_width)),
        vectors(work),
        transposed(vectors + n_padded * width_padded),
        products(transposed + n_padded * std::max(width_padded, n_padded)),
        line(products + n_padded * n_padded) {}

  static std::int64_t floats(std::int64_t num_vectors, std::int64_t vector_width) {
    const std::int64_t n = padded(num_vectors), width = padded(vector_width);
    return n * width + n * std::max(width, n) + n * n + num_vectors * (num_vectors - 1) / 2 +
           kSimdFloats;
  }

  // The vectors of row r.
  void read(ConstMatrix first, ConstMatrix rest, std::int64_t r) const {
    float* to = vectors;
    if (first.cols > 0) {
      copy_vector(first.row(r), to);
      to += width_padded;
    }
    const float* from = rest.row(r);
    for (std::int64_t c = 0; c < rest.cols; c += width, to += width_padded) {
      copy_vector(from + c, to);
    }
  }

  void copy_vector(const float* from, float* to) const {
    const std::int64_t whole = width / kSimdFloats * kSimdFloats;
    for (std::int64_t k = 0; k < whole; k += kSimdFloats) store(to + k, load(from + k));
    for (std::int64_t k = whole; k < width; ++k) to[k] = from[k];
  }

  void transpose_vectors() const {
    constexpr auto kSquare = static_cast<std::size_t>(kPartFloats);
    for (std::int64_t i = 0; i < n; i += kPartFloats) {
      for (std::int64_t k = 0; k < width; k += kPartFloats) {
        SimdPart square[kSquare];
        for (std::int64_t l = 0; l < kPartFloats; ++l) {
          square[l] = load_part(vectors + (i + l) * width_padded + k);
        }
        transpose<kSquare>(square);
        for (std::int64_t l = 0; l < kPartFloats; ++l) {
          store_part(transposed + (k + l) * n_padded + i, square[l]);
        }
      }
    }
  }
};

// acc[t] += sum over i of a[t * a_row + i * a_col] * b[i * b_stride + 0..15], for kTile rows of a.
inline void multiply_tile(const float* a,
                          std::int64_t a_row,
                          std::int64_t a_col,
                          const float* b,
                          std::int64_t b_stride,
                          std::int64_t count,
                          Simd (&acc)[kTile]) {
  for (std::int64_t i = 0; i < count; ++i) {
    const Simd right = load(b + i * b_stride);
    for (std::int64_t t = 0; t < kTile; ++t) acc[t] += a[t * a_row + i * a_col] * right;
  }
}

/// Adds or sets the first `count` floats, at most kSimdFloats.
void add_or_set(const Simd& v, float* to, std::int64_t count, bool add) {
  if (count == kSimdFloats) {
    store(to, add ? load(to) + v : v);
    return;
  }
  for (std::int64_t l = 0; l < count; ++l) to[l] = add ? to[l] + v[l] : v[l];
}

}  // namespace

std::int64_t dot_interaction_work(std::int64_t num_vectors, std::int64_t width) {
  return Work::floats(num_vectors, width);
}

void dot_interaction(ConstMatrix first,
                     ConstMatrix rest,
                     std::int64_t width,
                     float* work,
                     Matrix out) {
  const Work w((first.cols > 0 ? 1 : 0) + rest.cols / width, width, work);
  std::fill_n(work, Work::floats(w.n, width), 0.0F);
  for (std::int64_t r = 0; r < rest.rows; ++r) {
    w.read(first, rest, r);
    w.transpose_vectors();
    for (std::int64_t i = 0; i < w.n; i += kTile) {
      for (std::int64_t j = 0; j < i + kTile - 1; j += kSimdFloats) {
        Simd acc[kTile] = {};
        multiply_tile(w.vectors + i * w.width_padded, w.width_padded, 1, w.transposed + j,
                      w.n_padded, width, acc);
        for (std::int64_t t = 0; t < kTile; ++t) {
          store(w.products + (i + t) * w.n_padded + j, acc[t]);
        }
      }
    }
    // Copies whole Simd: what a row writes past its end is overwritten by the rows after it.
    float* target = w.line;
    for (std::int64_t i = 1; i < w.n; target += i++) {
      for (std::int64_t j = 0; j < i; j += kSimdFloats) {
        store(target + j, load(w.products + i * w.n_padded + j));
      }
    }
    std::copy_n(w.line, w.n * (w.n - 1) / 2, out.row(r));
  }
}

// The gradient of a vector z_i: the sum over j < i of d_ij z_j and over j > i of d_ji z_j.
void dot_interaction_backward(ConstMatrix first,
                              ConstMatrix rest,
                              std::int64_t width,
                              ConstMatrix dout,
                              float* work,
                              Matrix dfirst,
                              Matrix drest) {
  const std::int64_t has_first = first.cols > 0 ? 1 : 0;
  const Work w(has_first + rest.cols / width, width, work);
  float* const triangle = w.transposed;
  std::fill_n(work, Work::floats(w.n, width), 0.0F);
  for (std::int64_t r = 0; r < rest.rows; ++r) {
    w.read(first, rest, r);
    std::copy_n(dout.row(r), w.n * (w.n - 1) / 2, w.line);
    const float* from = w.line;
    for (std::int64_t i = 1; i < w.n; from += i++) {
      float* const row = triangle + i * w.n_padded;
      for (std::int64_t j = 0; j < i; j += kSimdFloats) store(row + j, load(from + j));
      std::fill(row + i, row + padded(i), 0.0F);
    }
    for (std::int64_t i = 0; i < w.n; i += kTile) {
      const std::int64_t below = std::min(i + kTile, w.n);  // of the triangle's row i + kTile - 1
      for (std::int64_t k = 0; k < width; k += kSimdFloats) {
        Simd acc[kTile] = {};
        multiply_tile(triangle + i * w.n_padded, w.n_padded, 1, w.vectors + k, w.width_padded,
                      below, acc);
        multiply_tile(triangle + i * w.n_padded + i, 1, w.n_padded,
                      w.vectors + i * w.width_padded + k, w.width_padded, w.n - i, acc);
        const std::int64_t count = std::min(kSimdFloats, width - k);
        for (std::int64_t t = 0; t < kTile && i + t < w.n; ++t) {
          const std::int64_t vector = i + t - has_first;
          if (vector < 0) {
            add_or_set(acc[t], dfirst.row(r) + k, count, /*add=*/true);
          } else {
            add_or_set(acc[t], drest.row(r) + vector * width + k, count, /*add=*/false);
          }
        }
      }
    }
  }
}

}  // namespace satrap::dense
