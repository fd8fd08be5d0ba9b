#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "satrap/core/error.h"
#include "satrap/kernels/dims.h"
#include "satrap/kernels/row_optimizer.h"

namespace satrap {

/// Sum of the squares of g[d] = grad[d] + weight_decay * weights[d]: eight interleaved partial
/// sums, combined in pairs. This order is part of the result, whatever the width of the machine's
/// vectors.
template <class Dim>
inline float sum_of_squares(float weight_decay,
                            const float* __restrict weights,  // [dim]
                            const float* __restrict grad,     // [dim]
                            Dim dim) {
  constexpr std::int64_t kLanes = 8, kChunk = 64;
  using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));
  Lanes sum = {};
  for (std::int64_t begin = 0; begin < dim; begin += kChunk) {
    const std::int64_t size = dim - begin < kChunk ? dim - begin : kChunk;
    float g[kChunk];
    for (std::int64_t d = 0; d < size; ++d) {
      g[d] = std::fma(weight_decay, weights[begin + d], grad[begin + d]);
    }
    for (std::int64_t d = size; d % kLanes != 0; ++d) g[d] = 0.0F;
    for (std::int64_t d = 0; d < size; d += kLanes) {
      Lanes x;
      std::memcpy(&x, g + d, sizeof(x));
      sum += x * x;
    }
  }
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

/// One row's step of the optimizer `kType` (formulas: row_optimizer.h). Multiplications and
/// additions are fused exactly where std::fma is written, so every platform gets the same bits.
template <RowOptimizerType kType, class Dim>
inline void update_row(const RowStep& s,
                       float* __restrict weights,     // [dim]
                       float* __restrict state,       // [state_floats(kType, dim)]
                       const float* __restrict grad,  // [dim]
                       Dim dim) {
  if constexpr (kType == RowOptimizerType::kSgd) {
    for (std::int64_t d = 0; d < dim; ++d) {
      const float g = std::fma(s.weight_decay, weights[d], grad[d]);
      weights[d] = std::fma(-s.lr, g, weights[d]);
    }
  } else if constexpr (kType == RowOptimizerType::kAdagrad) {
    for (std::int64_t d = 0; d < dim; ++d) {
      const float g = std::fma(s.weight_decay, weights[d], grad[d]);
      const float n = std::fma(g, g, state[d]);
      state[d] = n;
      weights[d] -= s.lr * g / (std::sqrt(n) + s.eps);
    }
  } else if constexpr (kType == RowOptimizerType::kRowwiseAdagrad) {
    const float sum = sum_of_squares(s.weight_decay, weights, grad, dim);
    const float n = state[0] + sum / static_cast<float>(dim);
    state[0] = n;
    const float scale = s.lr / (std::sqrt(n) + s.eps);
    const float weight_decay = s.weight_decay;
    for (std::int64_t d = 0; d < dim; ++d) {
      const float g = std::fma(weight_decay, weights[d], grad[d]);
      weights[d] = std::fma(-scale, g, weights[d]);
    }
  } else if constexpr (kType == RowOptimizerType::kAdam) {
    float* __restrict m = state;
    float* __restrict v = state + padded_dim(dim);
    for (std::int64_t d = 0; d < dim; ++d) {
      const float g = std::fma(s.weight_decay, weights[d], grad[d]);
      m[d] = std::fma(s.beta1, m[d], s.one_minus_beta1 * g);
      v[d] = std::fma(s.beta2, v[d], s.one_minus_beta2 * g * g);
      weights[d] -= s.lr * m[d] / (std::sqrt(v[d]) + s.eps);
    }
  } else {
    static_assert(kType == RowOptimizerType::kFtrl);
    float* __restrict z = state;
    float* __restrict n = state + padded_dim(dim);
    for (std::int64_t d = 0; d < dim; ++d) {
      const float g = std::fma(s.weight_decay, weights[d], grad[d]);
      const float old_root = std::sqrt(n[d]);
      n[d] = std::fma(g, g, n[d]);
      const float root = std::sqrt(n[d]);
      const float sigma = (root - old_root) * s.ftrl_inverse_lr;
      z[d] = std::fma(-sigma, weights[d], std::fma(s.factor, g, z[d]));
      const float curvature = std::fma(s.ftrl_beta + root, s.ftrl_inverse_lr, s.ftrl_l2);
      const float pulled = (std::copysign(s.ftrl_l1, z[d]) - z[d]) / curvature;
      weights[d] = std::fabs(z[d]) <= s.ftrl_l1 ? 0.0F : pulled;
    }
  }
}

/// Calls function(std::integral_constant<RowOptimizerType, type>), outside the loop over rows.
template <class Function>
decltype(auto) with_optimizer(RowOptimizerType type, Function&& function) {
  using enum RowOptimizerType;
  switch (type) {
    case kSgd:
      return function(std::integral_constant<RowOptimizerType, kSgd>{});
    case kAdagrad:
      return function(std::integral_constant<RowOptimizerType, kAdagrad>{});
    case kRowwiseAdagrad:
      return function(std::integral_constant<RowOptimizerType, kRowwiseAdagrad>{});
    case kAdam:
      return function(std::integral_constant<RowOptimizerType, kAdam>{});
    case kFtrl:
      return function(std::integral_constant<RowOptimizerType, kFtrl>{});
  }
  SATRAP_CHECK(false, "row optimizer type ", static_cast<int>(type));
}

}  // namespace satrap
