#pragma once

#include <cstdint>

namespace satrap::dense {

/// With fp16, whose smallest number above 0 is 6e-8, the gradient of the loss is multiplied by a
/// power of two before the backward pass, and all gradients are divided by it after. A step whose
/// gradient is not finite though its loss is updates nothing and halves the factor; kGrowthSteps
/// finite ones in a row double it. At kMin it is not the factor: the step counts as not finite. The
/// rule, the start and the numbers are those of torch.amp.GradScaler; kMin and kMax are satrap's.
struct LossScaleRule {
  static constexpr float kStart = 0x1p16F, kMin = 1.0F, kMax = 0x1p24F, kGrowthSteps = 2000.0F;

  // Its state, floats that are exact up to 2^24: the factor, the finite steps in a row, and the
  // steps in all that it made skip.
  enum Part : std::uint8_t { kFactor, kFiniteSteps, kSkippedSteps, kNumParts };
};

}  // namespace satrap::dense
