#pragma once

#include <cmath>
#include <cstdint>

#include "satrap/kernels/row_optimizer.h"

/// Marks a function that a GPU runs, too.
#ifdef __CUDACC__
#define SATRAP_HOST_DEVICE __host__ __device__
#else
#define SATRAP_HOST_DEVICE
#endif

/// The formulas of row_optimizer.h as code, the same for every device. Multiplications and
/// additions are fused exactly where std::fma is written, so every platform gets the same bits.
namespace satrap {

/// The gradient of a weight, with weight decay.
SATRAP_HOST_DEVICE inline float decayed(const RowStep& s, float grad, float w) {
  return std::fma(s.weight_decay, w, grad);
}

/// One element's step of an optimizer that uses only that element. a and b: its state, as much as
/// the optimizer has, in the order of its arrays.
template <RowOptimizerType kType>
SATRAP_HOST_DEVICE inline void step_element(const RowStep& s,
                                            float grad,
                                            float& w,
                                            float& a,
                                            float& b) {
  const float g = decayed(s, grad, w);
  if constexpr (kType == RowOptimizerType::kSgd) {
    w = std::fma(-s.lr, g, w);
  } else if constexpr (kType == RowOptimizerType::kAdagrad) {
    a = std::fma(g, g, a);
    w -= s.lr * g / (std::sqrt(a) + s.eps);
  } else if constexpr (kType == RowOptimizerType::kAdam) {
    a = std::fma(s.beta1, a, s.one_minus_beta1 * g);
    b = std::fma(s.beta2, b, s.one_minus_beta2 * g * g);
    w -= s.lr * a / (std::sqrt(b) + s.eps);
  } else {
    static_assert(kType == RowOptimizerType::kFtrl);
    const float old_root = std::sqrt(b);
    b = std::fma(g, g, b);
    const float root = std::sqrt(b);
    const float sigma = (root - old_root) * s.ftrl_inverse_lr;
    a = std::fma(-sigma, w, std::fma(s.factor, g, a));
    const float curvature = std::fma(s.ftrl_beta + root, s.ftrl_inverse_lr, s.ftrl_l2);
    const float pulled = (std::copysign(s.ftrl_l1, a) - a) / curvature;
    w = std::fabs(a) <= s.ftrl_l1 ? 0.0F : pulled;
  }
}

/// The sum of eight interleaved partial sums, combined in pairs. This order is part of the result.
template <class Eight>
SATRAP_HOST_DEVICE inline float sum_of_eight(const Eight& sum) {
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

/// Row-wise Adagrad: advances n, the one number of a row's state, and returns the row's rate: then
/// w = fma(-rate, g, w) for each element.
SATRAP_HOST_DEVICE inline float rowwise_rate(const RowStep& s,
                                             float sum_of_squares,
                                             std::int64_t dim,
                                             float& n) {
  n += sum_of_squares / static_cast<float>(dim);
  return s.lr / (std::sqrt(n) + s.eps);
}

}  // namespace satrap
