#include "src/dense/ops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "satrap/core/portable_math.h"
#include "satrap/kernels/dropout.h"
#include "src/dense/simd.h"

namespace satrap::dense {

void add_bias(Matrix y, const float* bias, bool relu) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    float* __restrict row = y.row(r);
    if (relu) {
      for (std::int64_t c = 0; c < y.cols; ++c) {
        const float v = row[c] + bias[c];
        row[c] = v < 0.0F ? 0.0F : v;
      }
    } else {
      for (std::int64_t c = 0; c < y.cols; ++c) row[c] += bias[c];
    }
  }
}

void relu(Matrix y) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    float* row = y.row(r);
    for (std::int64_t c = 0; c < y.cols; ++c) row[c] = row[c] < 0.0F ? 0.0F : row[c];
  }
}

void relu_backward(ConstMatrix y, Matrix dy) {
  for (std::int64_t r = 0; r < dy.rows; ++r) {
    const float* __restrict out = y.row(r);
    float* __restrict d = dy.row(r);
    for (std::int64_t c = 0; c < dy.cols; ++c) d[c] = out[c] <= 0.0F ? 0.0F : d[c];
  }
}

void sum_columns(ConstMatrix dy, float* db, bool accumulate) {
  if (!accumulate) std::fill_n(db, dy.cols, 0.0F);
  for (std::int64_t r = 0; r < dy.rows; ++r) {
    const float* __restrict d = dy.row(r);
    float* __restrict total = db;
    for (std::int64_t c = 0; c < dy.cols; ++c) total[c] += d[c];
  }
}

void relu_backward_sum_columns(ConstMatrix y, Matrix dy, float* db, bool accumulate) {
  if (!accumulate) std::fill_n(db, dy.cols, 0.0F);
  for (std::int64_t r = 0; r < dy.rows; ++r) {
    const float* __restrict out = y.row(r);
    float* __restrict d = dy.row(r);
    float* __restrict total = db;
    for (std::int64_t c = 0; c < dy.cols; ++c) {
      const float v = out[c] <= 0.0F ? 0.0F : d[c];
      d[c] = v;
      total[c] += v;
    }
  }
}

void dropout(Matrix y, double rate, std::uint64_t seed, std::int64_t first_example) {
  const Dropout dropout(rate, seed);
  for (std::int64_t r = 0; r < y.rows; ++r) {
    const RandomStream draws = dropout.draws_of(first_example + r);
    float* row = y.row(r);
    for (std::int64_t c = 0; c < y.cols; ++c) {
      const float factor = dropout.factor(draws, c);
      row[c] = factor == 0.0F ? 0.0F : row[c] * factor;
    }
  }
}

void scale(Matrix dy, float factor) {
  for (std::int64_t r = 0; r < dy.rows; ++r) {
    float* d = dy.row(r);
    for (std::int64_t c = 0; c < dy.cols; ++c) d[c] *= factor;
  }
}

void dot_rows(ConstMatrix x, const float* w, const float* bias, Matrix y, bool add) {
  const float constant = bias == nullptr ? 0.0F : *bias;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const float v = dot(x.row(r), w, x.cols) + constant;
    *y.row(r) = add ? *y.row(r) + v : v;
  }
}

void dot_rows_backward(ConstMatrix x,
                       const float* w,
                       ConstMatrix dy,
                       Matrix dx,
                       float* dw,
                       float* db,
                       bool accumulate) {
  if (!accumulate) {
    std::fill_n(dw, x.cols, 0.0F);
    if (db != nullptr) *db = 0.0F;
  }
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const float d = *dy.row(r);
    const float* __restrict in = x.row(r);
    float* __restrict total = dw;
    for (std::int64_t c = 0; c < x.cols; ++c) total[c] += d * in[c];
    if (db != nullptr) *db += d;
    if (dx.data == nullptr) continue;
    float* __restrict out = dx.row(r);
    for (std::int64_t c = 0; c < x.cols; ++c) out[c] = d * w[c];
  }
}

void fill(Matrix to, float value) {
  for (std::int64_t r = 0; r < to.rows; ++r) std::fill_n(to.row(r), to.cols, value);
}

void copy(ConstMatrix from, Matrix to) {
  for (std::int64_t r = 0; r < from.rows; ++r) std::copy_n(from.row(r), from.cols, to.row(r));
}

void add(ConstMatrix from, Matrix to) {
  for (std::int64_t r = 0; r < from.rows; ++r) {
    const float* __restrict source = from.row(r);
    float* __restrict target = to.row(r);
    for (std::int64_t c = 0; c < from.cols; ++c) target[c] += source[c];
  }
}

void sum_row(ConstMatrix x, Matrix y, bool add) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const float v = sum(x.row(r), x.cols);
    *y.row(r) = add ? *y.row(r) + v : v;
  }
}

void sum_row_backward(ConstMatrix dy, Matrix dx) {
  for (std::int64_t r = 0; r < dx.rows; ++r) std::fill_n(dx.row(r), dx.cols, *dy.row(r));
}

namespace {

// sum over j of (sum_f v[f, j])^2 - sum_f v[f, j]^2.
float second_order(const float* v, std::int64_t fields, std::int64_t k) {
  Simd result{};
  std::int64_t j = 0;
  for (; j + kSimdFloats <= k; j += kSimdFloats) {
    Simd total{}, squares{};
    for (std::int64_t f = 0; f < fields; ++f) {
      const Simd x = load(v + f * k + j);
      total += x;
      squares += x * x;
    }
    result += total * total - squares;
  }
  float rest = 0.0F;
  for (; j < k; ++j) {
    float total = 0.0F, squares = 0.0F;
    for (std::int64_t f = 0; f < fields; ++f) {
      total += v[f * k + j];
      squares += v[f * k + j] * v[f * k + j];
    }
    rest += total * total - squares;
  }
  return sum(result) + rest;
}

}  // namespace

void fm(ConstMatrix pooled, std::int64_t width, bool products, Matrix factors, Matrix y) {
  const std::int64_t k = width - 1, fields = pooled.cols / width;
  for (std::int64_t r = 0; r < pooled.rows; ++r) {
    const float* row = pooled.row(r);
    float first_order = 0.0F;
    for (std::int64_t f = 0; f < fields; ++f) {
      first_order += row[f * width];
      std::copy_n(row + f * width + 1, k, factors.row(r) + f * k);
    }
    const float second = products ? 0.5F * second_order(factors.row(r), fields, k) : 0.0F;
    *y.row(r) += first_order + second;
  }
}

void fm_backward(ConstMatrix pooled,
                 std::int64_t width,
                 bool products,
                 ConstMatrix dfactors,
                 ConstMatrix dy,
                 Matrix dpooled) {
  const std::int64_t k = width - 1, fields = pooled.cols / width;
  for (std::int64_t r = 0; r < pooled.rows; ++r) {
    const float* __restrict row = pooled.row(r);
    const float* __restrict deep = dfactors.data == nullptr ? nullptr : dfactors.row(r);
    float* __restrict out = dpooled.row(r);
    const float d = *dy.row(r);
    if (!products) {
      for (std::int64_t f = 0; f < fields; ++f) {
        out[f * width] = d;
        for (std::int64_t j = 1; j < width; ++j) {
          out[f * width + j] = deep == nullptr ? 0.0F : deep[f * k + j - 1];
        }
      }
      continue;
    }
    // out's first field serves as the sum over fields until it is written last.
    float* __restrict total = out;
    std::fill_n(total, width, 0.0F);
    for (std::int64_t f = 0; f < fields; ++f) {
      for (std::int64_t j = 1; j < width; ++j) total[j] += row[f * width + j];
    }
    for (std::int64_t f = fields - 1; f >= 0; --f) {
      out[f * width] = d;
      for (std::int64_t j = 1; j < width; ++j) {
        const float from_deep = deep == nullptr ? 0.0F : deep[f * k + j - 1];
        out[f * width + j] = from_deep + d * (total[j] - row[f * width + j]);
      }
    }
  }
}

void cross(ConstMatrix x0, ConstMatrix x, const float* bias, Matrix u, Matrix next) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const float* __restrict zero = x0.row(r);
    const float* __restrict in = x.row(r);
    float* __restrict product = u.row(r);
    float* __restrict out = next.row(r);
    for (std::int64_t c = 0; c < x.cols; ++c) {
      product[c] += bias[c];
      out[c] = zero[c] * product[c] + in[c];
    }
  }
}

void cross_backward(ConstMatrix x0, ConstMatrix u, ConstMatrix d, Matrix dx0, Matrix du) {
  for (std::int64_t r = 0; r < d.rows; ++r) {
    const float* __restrict zero = x0.row(r);
    const float* __restrict product = u.row(r);
    const float* __restrict grad = d.row(r);
    float* __restrict dzero = dx0.row(r);
    float* __restrict dproduct = du.row(r);
    for (std::int64_t c = 0; c < d.cols; ++c) {
      dzero[c] += grad[c] * product[c];
      dproduct[c] = grad[c] * zero[c];
    }
  }
}

bool all_finite(ConstMatrix x) {
  constexpr std::uint32_t kExponent = 0x7F800000U;
  std::uint32_t bad = 0;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const float* row = x.row(r);
    for (std::int64_t c = 0; c < x.cols; ++c) {
      bad |= (std::bit_cast<std::uint32_t>(row[c]) & kExponent) == kExponent ? 1U : 0U;
    }
  }
  return bad == 0;
}

}  // namespace satrap::dense
