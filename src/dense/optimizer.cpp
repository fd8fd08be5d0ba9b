#include "src/dense/optimizer.h"

#include <algorithm>
#include <cmath>

namespace satrap::dense {
namespace {

constexpr std::int64_t kChunk = 16384;  // parameters per unit of parallel work

}  // namespace

Optimizer::Optimizer(const DenseOptimizerConfig& config, std::int64_t num_parameters)
    : config_(config), num_updates_(1) {
  const bool adam = config.type == "adam" || config.type == "adamw";
  uses_first_ = adam || (config.type == "sgd" && config.momentum > 0.0);
  uses_second_ = adam || config.type == "adagrad";
  if (uses_first_) first_ = AlignedBuffer(num_parameters);
  if (uses_second_) second_ = AlignedBuffer(num_parameters);
  if (config.type == "adagrad") {
    std::ranges::fill(second_.span(), static_cast<float>(config.initial_accumulator));
  }
}

std::vector<Optimizer::State> Optimizer::state() {
  std::vector<State> state;
  if (config_.type == "adam" || config_.type == "adamw") {
    state.push_back({config_.type + ".step", num_updates_.span()});
    state.push_back({config_.type + ".exp_avg", first_.span()});
    state.push_back({config_.type + ".exp_avg_sq", second_.span()});
  } else if (uses_first_) {
    state.push_back({"sgd.momentum_buffer", first_.span()});
  } else if (uses_second_) {
    state.push_back({"adagrad.sum", second_.span()});
  }
  return state;
}

void Optimizer::apply(std::span<float> parameters,
                      std::span<const float> gradient,
                      float gradient_scale,
                      double lr,
                      ThreadPool& pool) {
  *num_updates_.data() += 1.0F;
  const std::int64_t size = std::ssize(parameters);
  pool.parallel_for((size + kChunk - 1) / kChunk, [&](std::int64_t i) {
    update_range(parameters.data(), gradient.data(), i * kChunk, std::min(size, (i + 1) * kChunk),
                 gradient_scale, lr);
  });
}

// The order of operations is that of torch's single-tensor implementations.
void Optimizer::update_range(float* __restrict p,
                             const float* __restrict g,
                             std::int64_t begin,
                             std::int64_t end,
                             float scale,
                             double lr) {
  const float decay = static_cast<float>(config_.weight_decay);
  const float rate = static_cast<float>(lr), eps = static_cast<float>(config_.eps);
  float* __restrict first = first_.data();
  float* __restrict second = second_.data();

  if (config_.type == "sgd" && !uses_first_) {
    for (std::int64_t i = begin; i < end; ++i) p[i] -= rate * (scale * g[i] + decay * p[i]);
  } else if (config_.type == "sgd") {
    const float momentum = static_cast<float>(config_.momentum);
    for (std::int64_t i = begin; i < end; ++i) {
      first[i] = momentum * first[i] + (scale * g[i] + decay * p[i]);
      p[i] -= rate * first[i];
    }
  } else if (config_.type == "adagrad") {
    for (std::int64_t i = begin; i < end; ++i) {
      const float grad = scale * g[i] + decay * p[i];
      second[i] += grad * grad;
      p[i] -= rate * (grad / (std::sqrt(second[i]) + eps));
    }
  } else {
    const bool decoupled = config_.type == "adamw";
    const double step = static_cast<double>(*num_updates_.data());
    const float step_size = static_cast<float>(lr / (1.0 - std::pow(config_.beta1, step)));
    const float root2 = static_cast<float>(std::sqrt(1.0 - std::pow(config_.beta2, step)));
    const float rest1 = static_cast<float>(1.0 - config_.beta1);
    const float beta2 = static_cast<float>(config_.beta2);
    const float rest2 = static_cast<float>(1.0 - config_.beta2);
    const float shrink = decoupled ? static_cast<float>(1.0 - lr * config_.weight_decay) : 1.0F;
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

}  // namespace satrap::dense
