#pragma once

#include <ATen/ATen.h>

#include "src/dense/libtorch.h"
#include "src/dense/libtorch/place.h"
#include "src/dense/loss_scale.h"

namespace satrap::dense {

/// The loss scale of a network in its device's memory (src/dense/loss_scale.h), which kernels read
/// and change and no host waits for. Without one nothing is done.
class DeviceLossScale {
 public:
  DeviceLossScale(const TensorNetwork::Memory& memory, at::Device place) {
    if (memory.loss_scale == nullptr) return;
    factor_ = tensor_at(place, memory.loss_scale + LossScaleRule::kFactor, 1);
    finite_steps_ = tensor_at(place, memory.loss_scale + LossScaleRule::kFiniteSteps, 1);
    skipped_steps_ = tensor_at(place, memory.loss_scale + LossScaleRule::kSkippedSteps, 1);
    flag_ = tensor_at(place, memory.flag, 1);
    num_overflows_ = tensor_at(place, memory.flag + 1, 1);
  }

  at::Tensor scaled(const at::Tensor& given) const { return is_on() ? given * factor_ : given; }

  /// Exact, since the factor is a power of two.
  void unscale(at::Tensor gradient, at::Tensor dpooled) const {
    if (!is_on()) return;
    const at::Tensor inverse = factor_.reciprocal();
    gradient.mul_(inverse);
    dpooled.mul_(inverse);
  }

  /// The second float of the flag, once the first is this rank's.
  void flag_overflow(const at::Tensor& loss) {
    if (!is_on()) return;
    const at::Tensor may_be_lowered = factor_.gt(LossScaleRule::kMin);
    num_overflows_.copy_(flag_.ne(0).logical_and_(may_be_lowered).logical_and_(at::isfinite(loss)));
  }

  /// After a step whose flag was summed over the ranks.
  void update() {
    if (!is_on()) return;
    const at::Tensor is_refused = flag_.ne(0);
    const at::Tensor overflowed = is_refused.logical_and(flag_.eq(num_overflows_)).to(at::kFloat);
    finite_steps_.add_(1).mul_(is_refused.logical_not());
    const at::Tensor grows = finite_steps_.ge(LossScaleRule::kGrowthSteps).to(at::kFloat);
    factor_.mul_(1 + grows - 0.5 * overflowed).clamp_(LossScaleRule::kMin, LossScaleRule::kMax);
    finite_steps_.mul_(1 - grows);
    skipped_steps_.add_(overflowed);
  }

 private:
  bool is_on() const { return factor_.defined(); }

  at::Tensor factor_, finite_steps_, skipped_steps_;  // [1]
  at::Tensor flag_, num_overflows_;
};

}  // namespace satrap::dense
