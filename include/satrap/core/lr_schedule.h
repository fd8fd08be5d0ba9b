#pragma once

#include <cstdint>
#include <string>

#include "satrap/core/config.h"

namespace satrap {

/// How the rate changes after the warm-up.
enum class RateDecay { kConstant, kLinear, kCosine, kExponential };
inline constexpr Choice<RateDecay> kRateDecays[] = {{"constant", RateDecay::kConstant},
                                                    {"linear", RateDecay::kLinear},
                                                    {"cosine", RateDecay::kCosine},
                                                    {"exponential", RateDecay::kExponential}};

/// Learning rate over steps, as a factor on the base rate: linear warm-up over `warmup_steps`
/// (factor step / warmup_steps), then over `decay_steps` constant, linear to 0, half a cosine to 0,
/// or exponential (decay_rate ^ (steps since warm-up / decay_steps)); after the warm-up never below
/// min_factor. Also a section of the configuration of row optimizers and of the dense optimizer.
struct LrSchedule {
  std::int64_t warmup_steps = 0;
  RateDecay decay = RateDecay::kConstant;
  std::int64_t decay_steps = 0;  // required > 0 unless constant
  double decay_rate = 0.1;       // exponential
  double min_factor = 0.0;

  void visit(ConfigVisitor& v);

  /// Throws Error(kInvalidConfig) starting with `where` if fields contradict each other.
  void validate(const std::string& where) const;

  /// Factor at `step`, counted from 1.
  double factor(std::int64_t step) const;
};

}  // namespace satrap
