#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "satrap/core/thread_pool.h"
#include "satrap/job/model_config.h"
#include "satrap/kernels/dense_update.h"
#include "src/dense/aligned_buffer.h"

namespace satrap::dense {

/// A torch.optim optimizer over one flat buffer of parameters. It works element by element, so the
/// result does not depend on the pool's size.
class Optimizer {
 public:
  Optimizer(const job::DenseOptimizerConfig& config, std::int64_t num_parameters);

  /// One update with `gradient_scale * gradient`. Counts its calls (Adam's bias correction).
  void apply(std::span<float> parameters,
             std::span<const float> gradient,
             float gradient_scale,
             double lr,
             ThreadPool& pool);

  /// State by name: the number of updates, and what the formula keeps per parameter.
  struct State {
    std::string name;
    std::span<float> values;
  };
  std::vector<State> state();
  std::span<float> first() { return first_.span(); }
  std::span<float> second() { return second_.span(); }
  float* num_updates() { return optimizer_.is_adam() ? num_updates_.data() : nullptr; }

 private:
  const DenseOptimizer optimizer_;
  const std::string name_;
  AlignedBuffer num_updates_;  // one float: exact up to 2^24, where the bias correction is long 1
  AlignedBuffer first_, second_;  // momentum or mean; sum or mean of squares
};

}  // namespace satrap::dense
