#include "satrap/kernels/row_optimizer.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "satrap/core/error.h"
#include "satrap/kernels/dims.h"

namespace satrap {

std::int64_t state_floats(RowOptimizerType type, std::int64_t dim) {
  const auto number = static_cast<int>(type);
  SATRAP_CHECK(number >= 0 && number < std::ssize(kRowOptimizers), "row optimizer type ", number);
  const RowOptimizerKind& kind = kind_of(type);
  return kind.num_states * (kind.is_rowwise ? 1 : padded_dim(dim));
}

void RowOptimizer::initialize_state(const float* weights, float* state, std::int64_t dim) const {
  const RowOptimizerKind& kind = kind_of(type);
  const std::int64_t stride = kind.is_rowwise ? 1 : padded_dim(dim);
  for (std::int64_t i = 0; i < kind.num_states; ++i) {
    std::fill_n(state + i * stride, kind.is_rowwise ? 1 : dim, 0.0F);
  }
  switch (type) {
    case RowOptimizerType::kAdagrad:
      std::fill_n(state, dim, initial_accumulator);
      break;
    case RowOptimizerType::kRowwiseAdagrad:
      *state = initial_accumulator;
      break;
    case RowOptimizerType::kFtrl: {
      const float curvature = (ftrl_beta + std::sqrt(initial_accumulator)) / lr + ftrl_l2;
      for (std::int64_t d = 0; d < dim; ++d) {
        const float w = weights[d];
        state[d] = w == 0.0F ? 0.0F : -std::fma(w, curvature, std::copysign(ftrl_l1, w));
      }
      std::fill_n(state + padded_dim(dim), dim, initial_accumulator);
      break;
    }
    default:  // begins with zeros
      break;
  }
}

RowStep::RowStep(const RowOptimizer& optimizer, double schedule_factor, std::int64_t step)
    : lr(static_cast<float>(static_cast<double>(optimizer.lr) * schedule_factor)),
      factor(static_cast<float>(schedule_factor)),
      weight_decay(optimizer.weight_decay),
      eps(optimizer.eps),
      beta1(optimizer.beta1),
      one_minus_beta1(1.0F - optimizer.beta1),
      beta2(optimizer.beta2),
      one_minus_beta2(1.0F - optimizer.beta2),
      ftrl_inverse_lr(1.0F / optimizer.lr),
      ftrl_beta(optimizer.ftrl_beta),
      ftrl_l1(optimizer.ftrl_l1),
      ftrl_l2(optimizer.ftrl_l2) {
  if (optimizer.type == RowOptimizerType::kAdam) {
    const auto t = static_cast<double>(step);
    const double correction1 = 1.0 - std::pow(static_cast<double>(optimizer.beta1), t);
    const double correction2 = 1.0 - std::pow(static_cast<double>(optimizer.beta2), t);
    lr = static_cast<float>(static_cast<double>(optimizer.lr) * schedule_factor *
                            std::sqrt(correction2) / correction1);
  }
}

}  // namespace satrap
