#pragma once

#include <cstdint>
#include <vector>

#include "satrap/trainer/counted_rows.h"

namespace satrap::trainer {

/// Examples with similar predictions: the sum of what was predicted for them, and how many were
/// positive. Predictions that can be relied on have predicted = positives, up to chance. With
/// weights both sums are weighted.
struct ReliabilityBin {
  std::int64_t examples = 0;
  double predicted = 0.0;
  double positives = 0.0;
  double weight = 0.0;  // of the examples
  friend bool operator==(const ReliabilityBin&, const ReliabilityBin&) = default;
};

inline constexpr std::int64_t kReliabilityBins = 20;

/// Divides examples into up to kReliabilityBins bins of equal size, by ascending prediction; equal
/// predictions stay together: of n examples, one with s smaller predictions is in bin
/// floor(kReliabilityBins * s / n); with weights s and n are sums of weights. Empty bins are left
/// out. The order of the examples, and with it the number of ranks, changes no bit. No bins if a
/// prediction is NaN. Labels are 0 or 1, weights above 0 (CountedRows).
std::vector<ReliabilityBin> reliability(const ScoredRows& rows);

}  // namespace satrap::trainer
