#pragma once

#include <cmath>
#include <cstdint>

namespace satrap {

enum class DenseOptimizerType : std::uint32_t { kSgd, kAdagrad, kAdam, kAdamW };

/// The optimizer of dense parameters, as plain numbers: torch.optim's of the same name. Each update
/// takes the learning rate and a factor on the gradient.
struct DenseOptimizer {
  DenseOptimizerType type = DenseOptimizerType::kAdam;
  double momentum = 0.0;              // sgd
  double weight_decay = 0.0;          // L2 added to the gradient; decoupled for adamw
  double beta1 = 0.9, beta2 = 0.999;  // adam, adamw
  double eps = 1e-8;                  // adagrad, adam, adamw
  double initial_accumulator = 0.0;   // adagrad

  bool is_adam() const {
    return type == DenseOptimizerType::kAdam || type == DenseOptimizerType::kAdamW;
  }
  /// Whether it keeps a first value per parameter (momentum or mean), and a second (sum or mean of
  /// squares; adagrad's starts at initial_accumulator, everything else at 0).
  bool uses_first() const {
    return is_adam() || (type == DenseOptimizerType::kSgd && momentum > 0.0);
  }
  bool uses_second() const { return is_adam() || type == DenseOptimizerType::kAdagrad; }
};

/// One update of [begin, end) of flat parameters with `scale` * gradient, element by element.
/// num_updates counts this one (Adam's bias correction). The order of operations is that of torch's
/// single-tensor implementations.
inline void update_dense(const DenseOptimizer& optimizer,
                         float* __restrict p,
                         const float* __restrict g,
                         float* __restrict first,   // where uses_first()
                         float* __restrict second,  // where uses_second()
                         std::int64_t begin,
                         std::int64_t end,
                         float scale,
                         double lr,
                         double num_updates) {
  const float decay = static_cast<float>(optimizer.weight_decay);
  const float rate = static_cast<float>(lr), eps = static_cast<float>(optimizer.eps);
  if (optimizer.type == DenseOptimizerType::kSgd && !optimizer.uses_first()) {
    for (std::int64_t i = begin; i < end; ++i) p[i] -= rate * (scale * g[i] + decay * p[i]);
  } else if (optimizer.type == DenseOptimizerType::kSgd) {
    const float momentum = static_cast<float>(optimizer.momentum);
    for (std::int64_t i = begin; i < end; ++i) {
      first[i] = momentum * first[i] + (scale * g[i] + decay * p[i]);
      p[i] -= rate * first[i];
    }
  } else if (optimizer.type == DenseOptimizerType::kAdagrad) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float grad = scale * g[i] + decay * p[i];
      second[i] += grad * grad;
      p[i] -= rate * (grad / (std::sqrt(second[i]) + eps));
    }
  } else {
    const bool decoupled = optimizer.type == DenseOptimizerType::kAdamW;
    const float step_size = static_cast<float>(lr / (1.0 - std::pow(optimizer.beta1, num_updates)));
    const float root2 = static_cast<float>(std::sqrt(1.0 - std::pow(optimizer.beta2, num_updates)));
    const float rest1 = static_cast<float>(1.0 - optimizer.beta1);
    const float beta2 = static_cast<float>(optimizer.beta2);
    const float rest2 = static_cast<float>(1.0 - optimizer.beta2);
    const float shrink = decoupled ? static_cast<float>(1.0 - lr * optimizer.weight_decay) : 1.0F;
    const float coupled = decoupled ? 0.0F : decay;
    for (std::int64_t i = begin; i < end; ++i) {
      const float before = p[i] * shrink;
      const float grad = scale * g[i] + coupled * before;
      first[i] += rest1 * (grad - first[i]);
      second[i] = beta2 * second[i] + rest2 * (grad * grad);
      p[i] = before - step_size * (first[i] / (std::sqrt(second[i]) / root2 + eps));
    }
  }
}

}  // namespace satrap
