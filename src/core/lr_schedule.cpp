#include "satrap/core/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "satrap/core/error.h"

namespace satrap {

void LrSchedule::visit(ConfigVisitor& v) {
  v.field("warmup_steps", warmup_steps,
          "Steps during which the rate rises linearly to its full value.", {.min = 0});
  v.choice("decay", decay, kRateDecays, "How the rate changes after the warm-up.");
  v.field(
      "decay_steps", decay_steps,
      "Steps after the warm-up until the rate is 0 (linear, cosine) or multiplied by decay_rate "
      "(exponential).",
      {.min = 0});
  v.field("decay_rate", decay_rate, "Factor of the exponential decay per decay_steps.",
          {.min = 0, .max = 1, .min_exclusive = true});
  v.field("min_factor", min_factor, "Lowest factor on the rate after the warm-up.",
          {.min = 0, .max = 1});
}

void LrSchedule::validate(const std::string& where) const {
  if (decay != RateDecay::kConstant && decay_steps <= 0) {
    throw Error(ErrorCode::kInvalidConfig, concat(where, ": decay: ", word_of(decay, kRateDecays),
                                                  " needs decay_steps > 0, got ", decay_steps));
  }
  if (decay == RateDecay::kConstant && decay_steps > 0) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(where, ": decay_steps: ", decay_steps,
                       " has no effect while decay is constant; set decay to linear, cosine or "
                       "exponential"));
  }
}

double LrSchedule::factor(std::int64_t step) const {
  if (step < warmup_steps) return static_cast<double>(step) / static_cast<double>(warmup_steps);
  if (decay == RateDecay::kConstant) return 1;
  const double progress =
      static_cast<double>(step - warmup_steps) / static_cast<double>(decay_steps);
  const double until_end = std::min(progress, 1.0);
  double factor = 0;
  if (decay == RateDecay::kLinear) {
    factor = 1 - until_end;
  } else if (decay == RateDecay::kCosine) {
    factor = (1 + std::cos(std::numbers::pi * until_end)) / 2;
  } else {
    factor = std::pow(decay_rate, progress);
  }
  return std::max(factor, min_factor);
}

}  // namespace satrap
