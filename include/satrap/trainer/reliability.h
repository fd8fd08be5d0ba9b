#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace satrap::trainer {

/// Examples with similar predictions: the sum of what was predicted for them, and how many were
/// positive. Predictions that can be relied on have predicted = positives, up to chance.
struct ReliabilityBin {
  std::int64_t examples = 0;
  double predicted = 0.0;
  std::int64_t positives = 0;
  friend bool operator==(const ReliabilityBin&, const ReliabilityBin&) = default;
};

inline constexpr std::int64_t kReliabilityBins = 20;

/// Divides examples into up to kReliabilityBins bins of equal size, by ascending prediction; equal
/// predictions stay together: of n examples, one with s smaller predictions is in bin
/// floor(kReliabilityBins * s / n). Empty bins are left out. The order of the examples, and with it
/// the number of ranks, changes no bit. No bins if a prediction is NaN.
std::vector<ReliabilityBin> reliability(std::span<const float> probabilities,
                                        std::span<const float> labels);  // 0 or 1; both [n]

}  // namespace satrap::trainer
