#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <type_traits>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/kernels/dims.h"
#include "satrap/kernels/row_formulas.h"
#include "satrap/kernels/row_optimizer.h"

namespace satrap {

/// Sum of the squares of g[d] = grad[d] + weight_decay * weights[d]: eight interleaved partial sums
/// (sum_of_eight), whatever the width of the machine's vectors.
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
  return sum_of_eight(sum);
}

/// One row's step of the optimizer `kType` (formulas: row_formulas.h).
template <RowOptimizerType kType, class Dim>
inline void update_row(const RowStep& s,
                       float* __restrict weights,     // [dim]
                       float* __restrict state,       // [state_floats(kType, dim)]
                       const float* __restrict grad,  // [dim]
                       Dim dim) {
  const RowStep step = s;  // a copy: the compiler sees that no store to a row changes it
  if constexpr (kType == RowOptimizerType::kRowwiseAdagrad) {
    const float sum = sum_of_squares(step.weight_decay, weights, grad, dim);
    const float rate = rowwise_rate(step, sum, dim, state[0]);
    for (std::int64_t d = 0; d < dim; ++d) {
      weights[d] = std::fma(-rate, decayed(step, grad[d], weights[d]), weights[d]);
    }
  } else {
    constexpr int kStates = kind_of(kType).num_states;
    float* __restrict second = kStates > 1 ? state + padded_dim(dim) : nullptr;
    for (std::int64_t d = 0; d < dim; ++d) {
      float w = weights[d], a = 0.0F, b = 0.0F;
      if constexpr (kStates > 0) a = state[d];
      if constexpr (kStates > 1) b = second[d];
      step_element<kType>(step, grad[d], w, a, b);
      weights[d] = w;
      if constexpr (kStates > 0) state[d] = a;
      if constexpr (kStates > 1) second[d] = b;
    }
  }
}

/// Calls function(std::integral_constant<RowOptimizerType, type>), outside the loop over rows.
template <int kNumber = 0, class Function>
decltype(auto) with_optimizer(RowOptimizerType type, Function&& function) {
  constexpr auto kType = static_cast<RowOptimizerType>(kNumber);
  if constexpr (kNumber + 1 < std::ssize(kRowOptimizers)) {
    if (type != kType) {
      return with_optimizer<kNumber + 1>(type, std::forward<Function>(function));
    }
  }
  SATRAP_CHECK(type == kType, "row optimizer type ", static_cast<int>(type));
  return function(std::integral_constant<RowOptimizerType, kType>{});
}

}  // namespace satrap
