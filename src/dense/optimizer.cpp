#include "src/dense/optimizer.h"

#include <algorithm>

namespace satrap::dense {
namespace {

constexpr std::int64_t kChunk = 16384;  // parameters per unit of parallel work

}  // namespace

Optimizer::Optimizer(const job::DenseOptimizerConfig& config, std::int64_t num_parameters)
    : optimizer_(job::plain_optimizer(config)),
      name_(word_of(config.type, job::kDenseOptimizers)),
      num_updates_(1) {
  if (optimizer_.uses_first()) first_ = AlignedBuffer(num_parameters);
  if (optimizer_.uses_second()) second_ = AlignedBuffer(num_parameters);
  if (optimizer_.type == DenseOptimizerType::kAdagrad) {
    std::ranges::fill(second_.span(), static_cast<float>(config.initial_accumulator));
  }
}

std::vector<Optimizer::State> Optimizer::state() {
  std::vector<State> state;
  if (optimizer_.is_adam()) {
    state.push_back({name_ + ".step", num_updates_.span()});
    state.push_back({name_ + ".exp_avg", first_.span()});
    state.push_back({name_ + ".exp_avg_sq", second_.span()});
  } else if (optimizer_.uses_first()) {
    state.push_back({"sgd.momentum_buffer", first_.span()});
  } else if (optimizer_.uses_second()) {
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
    update_dense(optimizer_, parameters.data(), gradient.data(), first_.data(), second_.data(),
                 i * kChunk, std::min(size, (i + 1) * kChunk), gradient_scale, lr,
                 static_cast<double>(*num_updates_.data()));
  });
}

}  // namespace satrap::dense
