#pragma once

#include <cstdint>

#include "satrap/core/hash.h"

namespace satrap {

/// Inverted dropout: an element is zero with probability `rate`, in [0, 1), else scaled by
/// 1 / (1 - rate), so that its mean stays. Which elements are zero depends on the seed, the
/// example's number in its global batch and the column, so that pieces, ranks and devices agree.
struct Dropout {
  std::uint64_t seed = 0;  // of the step and the layer
  std::uint64_t threshold = 0;
  float keep_scale = 1.0F;

  Dropout(double rate, std::uint64_t seed_of_layer)
      : seed(seed_of_layer),
        threshold(static_cast<std::uint64_t>(rate * 0x1.0p53)),
        keep_scale(static_cast<float>(1.0 / (1.0 - rate))) {}

  constexpr RandomStream draws_of(std::int64_t example) const {
    return {hash64(seed, static_cast<std::uint64_t>(example))};
  }
  constexpr float factor(const RandomStream& draws, std::int64_t column) const {
    return (draws.bits(static_cast<std::uint64_t>(column)) >> 11) >= threshold ? keep_scale : 0.0F;
  }
};

}  // namespace satrap
