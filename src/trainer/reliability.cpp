#include "satrap/trainer/reliability.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "satrap/core/sorted_scores.h"

namespace satrap::trainer {

std::vector<ReliabilityBin> reliability(const ScoredRows& rows) {
  if (std::ranges::any_of(rows.probabilities, [](float p) { return std::isnan(p); })) return {};
  const SortedScores sorted(rows.probabilities, rows.labels, rows.weights);
  double all = 0.0;  // weights, of which those of the examples before i, and of smaller predictions
  for (std::size_t i = 0; i < sorted.size(); ++i) all += sorted.weight(i);
  double before = 0.0, smaller = 0.0;
  std::vector<ReliabilityBin> bins;
  std::int64_t bin = 0;  // of the last of `bins`
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double weight = sorted.weight(i);
    if (i > 0 && sorted.score(i) != sorted.score(i - 1)) smaller = before;
    before += weight;
    const auto wanted =
        static_cast<std::int64_t>(static_cast<double>(kReliabilityBins) * smaller / all);
    if (bins.empty() || wanted != bin) bins.emplace_back();
    bin = wanted;
    ++bins.back().examples;
    bins.back().predicted += weight * static_cast<double>(sorted.score(i));
    bins.back().positives += sorted.label(i) > 0.5F ? weight : 0.0;
    bins.back().weight += weight;
  }
  return bins;
}

}  // namespace satrap::trainer
