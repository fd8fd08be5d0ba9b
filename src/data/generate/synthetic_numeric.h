#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "satrap/data/synthetic_config.h"

namespace satrap::data {

/// One numeric column of the synthetic log: counts with a log-normal distribution, cut into
/// kQuantiles equally likely values, and the term that each adds to the logit. A value is an
/// integer that a float represents exactly, so it survives a text file; the term is a function of
/// the value, so that it can be learned.
struct SyntheticNumeric {
  static constexpr int kQuantileBits = 10;
  static constexpr std::size_t kQuantiles = std::size_t{1} << kQuantileBits;

  std::vector<float> values;  // [kQuantiles], ascending
  std::vector<double> terms;  // [kQuantiles]
  double missing_term = 0.0;
  std::uint64_t missing_below = 0;  // missing if 32 random bits are below this

  /// Index of the value drawn by 64 random bits, or kQuantiles: missing.
  std::size_t draw(std::uint64_t bits) const {
    return (bits & 0xFFFFFFFFU) < missing_below ? kQuantiles : bits >> (64 - kQuantileBits);
  }
};

std::vector<SyntheticNumeric> make_synthetic_numeric(const SyntheticConfig& config,
                                                     std::uint64_t seed);

}  // namespace satrap::data
