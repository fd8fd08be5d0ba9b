#include <cmath>

#include "src/dense/ops.h"

namespace satrap::dense {
namespace {
constexpr float kMomentum = 0.1F;
constexpr float kEps = 1e-5F;
}  // namespace

// Column sums are taken in double: a column is the whole batch, and its mean must not depend on how
// far its values are from zero.
void batch_norm(Matrix x,
                const BatchNormArgs& args,
                Matrix xhat,
                float* invstd,
                float* new_mean,
                float* new_var) {
  const double n = static_cast<double>(x.rows);
  for (std::int64_t c = 0; c < x.cols; ++c) {
    double total = 0.0;
    for (std::int64_t r = 0; r < x.rows; ++r) total += static_cast<double>(x.row(r)[c]);
    const double mean = total / n;
    double squares = 0.0;
    for (std::int64_t r = 0; r < x.rows; ++r) {
      const double d = static_cast<double>(x.row(r)[c]) - mean;
      squares += d * d;
    }
    invstd[c] = static_cast<float>(1.0 / std::sqrt(squares / n + static_cast<double>(kEps)));
    for (std::int64_t r = 0; r < x.rows; ++r) {
      const float normal = (x.row(r)[c] - static_cast<float>(mean)) * invstd[c];
      xhat.row(r)[c] = normal;
      x.row(r)[c] = normal * args.weight[c] + args.bias[c];
    }
    new_mean[c] =
        args.running_mean[c] + kMomentum * (static_cast<float>(mean) - args.running_mean[c]);
    new_var[c] = args.running_var[c];
    if (x.rows > 1) {
      const float unbiased = static_cast<float>(squares / (n - 1.0));
      new_var[c] += kMomentum * (unbiased - args.running_var[c]);
    }
  }
}

void batch_norm_eval(Matrix x, const BatchNormArgs& args) {
  for (std::int64_t c = 0; c < x.cols; ++c) {
    const float factor = args.weight[c] / std::sqrt(args.running_var[c] + kEps);
    for (std::int64_t r = 0; r < x.rows; ++r) {
      x.row(r)[c] = (x.row(r)[c] - args.running_mean[c]) * factor + args.bias[c];
    }
  }
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
  for (std::int64_t c = 0; c < dy.cols; ++c) {
    double total = 0.0, along = 0.0;
    for (std::int64_t r = 0; r < dy.rows; ++r) {
      const double d = static_cast<double>(dy.row(r)[c]);
      total += d;
      along += d * static_cast<double>(xhat.row(r)[c]);
    }
    const float mean = static_cast<float>(total / n), mean_along = static_cast<float>(along / n);
    for (std::int64_t r = 0; r < dy.rows; ++r) {
      float& d = dy.row(r)[c];
      d = weight[c] * invstd[c] * (d - mean - xhat.row(r)[c] * mean_along);
    }
    dweight[c] = static_cast<float>(along) + (accumulate ? dweight[c] : 0.0F);
    dbias[c] = static_cast<float>(total) + (accumulate ? dbias[c] : 0.0F);
  }
}

}  // namespace satrap::dense
