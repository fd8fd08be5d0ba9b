#include "satrap/trainer/reliability.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "satrap/core/sorted_scores.h"

namespace satrap::trainer {

std::vector<ReliabilityBin> reliability(std::span<const float> probabilities,
                                        std::span<const float> labels) {
  if (std::ranges::any_of(probabilities, [](float p) { return std::isnan(p); })) return {};
  const SortedScores sorted(probabilities, labels);
  const std::size_t n = sorted.size();
  std::vector<ReliabilityBin> bins;
  std::size_t bin = 0;      // of the last of `bins`
  std::size_t smaller = 0;  // examples with smaller predictions than example i
  for (std::size_t i = 0; i < n; ++i) {
    if (sorted.score(i) != sorted.score(smaller)) smaller = i;
    const std::size_t wanted = static_cast<std::size_t>(kReliabilityBins) * smaller / n;
    if (bins.empty() || wanted != bin) bins.emplace_back();
    bin = wanted;
    ++bins.back().examples;
    bins.back().predicted += static_cast<double>(sorted.score(i));
    bins.back().positives += sorted.label(i) > 0.5F ? 1 : 0;
  }
  return bins;
}

}  // namespace satrap::trainer
