#include <algorithm>
#include <cmath>

#include "src/dense/ops.h"

// Columns are processed a block at a time, so that rows are read in whole cache lines. Sums are in
// double: a column is the whole batch, and its mean may be far from zero.

namespace satrap::dense {
namespace {

constexpr float kMomentum = 0.1F;
constexpr float kEps = 1e-5F;
constexpr std::int64_t kBlock = 16;

// Calls block(first column, number of columns) for all columns.
template <class Block>
void for_column_blocks(std::int64_t cols, const Block& block) {
  for (std::int64_t c = 0; c < cols; c += kBlock) block(c, std::min(kBlock, cols - c));
}

struct Moments {
  double mean[kBlock] = {};
  double squares[kBlock] = {};  // sum of squared distances from the mean
};

Moments moments_of(ConstMatrix x) {
  Moments m;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    for (std::int64_t c = 0; c < x.cols; ++c) m.mean[c] += static_cast<double>(x.row(r)[c]);
  }
  for (std::int64_t c = 0; c < x.cols; ++c) m.mean[c] /= static_cast<double>(x.rows);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    for (std::int64_t c = 0; c < x.cols; ++c) {
      const double distance = static_cast<double>(x.row(r)[c]) - m.mean[c];
      m.squares[c] += distance * distance;
    }
  }
  return m;
}

}  // namespace

void batch_norm(Matrix x,
                const BatchNormArgs& args,
                Matrix xhat,
                float* invstd,
                float* new_mean,
                float* new_var) {
  const double n = static_cast<double>(x.rows);
  for_column_blocks(x.cols, [&](std::int64_t first, std::int64_t count) {
    const Moments m = moments_of(x.columns(first, count));
    float mean[kBlock];
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t c = first + i;
      mean[i] = static_cast<float>(m.mean[i]);
      invstd[c] = static_cast<float>(1.0 / std::sqrt(m.squares[i] / n + static_cast<double>(kEps)));
      new_mean[c] = args.running_mean[c] + kMomentum * (mean[i] - args.running_mean[c]);
      new_var[c] = args.running_var[c];
      if (x.rows > 1) {
        const auto unbiased = static_cast<float>(m.squares[i] / (n - 1.0));
        new_var[c] += kMomentum * (unbiased - args.running_var[c]);
      }
    }
    for (std::int64_t r = 0; r < x.rows; ++r) {
      float* row = x.row(r) + first;
      float* normal = xhat.row(r) + first;
      for (std::int64_t i = 0; i < count; ++i) {
        normal[i] = (row[i] - mean[i]) * invstd[first + i];
        row[i] = normal[i] * args.weight[first + i] + args.bias[first + i];
      }
    }
  });
}

void batch_norm_eval(Matrix x, const BatchNormArgs& args) {
  for_column_blocks(x.cols, [&](std::int64_t first, std::int64_t count) {
    float factor[kBlock];
    for (std::int64_t i = 0; i < count; ++i) {
      factor[i] = args.weight[first + i] / std::sqrt(args.running_var[first + i] + kEps);
    }
    for (std::int64_t r = 0; r < x.rows; ++r) {
      float* row = x.row(r) + first;
      for (std::int64_t i = 0; i < count; ++i) {
        row[i] = (row[i] - args.running_mean[first + i]) * factor[i] + args.bias[first + i];
      }
    }
  });
}

// dx = weight * invstd * (dy - mean(dy) - xhat * mean(dy * xhat))
void batch_norm_backward(ConstMatrix xhat,
                         const float* invstd,
                         const float* weight,
                         Matrix dy,
                         float* dweight,
                         float* dbias,
                         bool accumulate) {
  const double n = static_cast<double>(dy.rows);
  for_column_blocks(dy.cols, [&](std::int64_t first, std::int64_t count) {
    double total[kBlock] = {}, along[kBlock] = {};
    for (std::int64_t r = 0; r < dy.rows; ++r) {
      for (std::int64_t i = 0; i < count; ++i) {
        const double d = static_cast<double>(dy.row(r)[first + i]);
        total[i] += d;
        along[i] += d * static_cast<double>(xhat.row(r)[first + i]);
      }
    }
    float mean[kBlock], mean_along[kBlock], factor[kBlock];
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t c = first + i;
      mean[i] = static_cast<float>(total[i] / n);
      mean_along[i] = static_cast<float>(along[i] / n);
      factor[i] = weight[c] * invstd[c];
      dweight[c] = static_cast<float>(along[i]) + (accumulate ? dweight[c] : 0.0F);
      dbias[c] = static_cast<float>(total[i]) + (accumulate ? dbias[c] : 0.0F);
    }
    for (std::int64_t r = 0; r < dy.rows; ++r) {
      float* d = dy.row(r) + first;
      const float* normal = xhat.row(r) + first;
      for (std::int64_t i = 0; i < count; ++i) {
        d[i] = factor[i] * (d[i] - mean[i] - normal[i] * mean_along[i]);
      }
    }
  });
}

}  // namespace satrap::dense
