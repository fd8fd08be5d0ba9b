#include "satrap/core/auc.h"

#include <cmath>
#include <cstddef>
#include <limits>

#include "satrap/core/error.h"

namespace satrap {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

/// `weight_of(i)`: of row i.
template <class WeightOf>
double area(const SortedScores& rows, const WeightOf& weight_of) {
  double won = 0.0;  // pairs in which the positive scores higher, ties half
  double positives = 0.0, negatives = 0.0;
  for (std::size_t i = 0; i < rows.size();) {
    const float score = rows.score(i);
    double tied_positives = 0.0, tied_negatives = 0.0;
    for (; i < rows.size() && rows.score(i) == score; ++i) {
      const double label = static_cast<double>(rows.label(i));
      tied_positives += weight_of(i) * label;
      tied_negatives += weight_of(i) * (1.0 - label);
    }
    won += tied_positives * (negatives + 0.5 * tied_negatives);
    positives += tied_positives;
    negatives += tied_negatives;
  }
  if (positives <= 0.0 || negatives <= 0.0) return kUndefined;
  return won / (positives * negatives);
}

}  // namespace

double auc(std::span<const float> scores,
           std::span<const float> labels,
           std::span<const float> weights) {
  SATRAP_CHECK(
      scores.size() == labels.size() && (weights.empty() || weights.size() == labels.size()),
      "AUC of ", scores.size(), " scores, ", labels.size(), " labels and ", weights.size(),
      " weights");
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (!weights.empty() && weights[i] == 0.0F) continue;
    SATRAP_CHECK(labels[i] >= 0.0F && labels[i] <= 1.0F, "label ", i, " is ", labels[i]);
    if (std::isnan(scores[i])) return kUndefined;
  }
  return auc(SortedScores(scores, labels, weights));
}

double auc(const SortedScores& rows) {
  if (!rows.is_weighted()) return area(rows, [](std::size_t) { return 1.0; });
  return area(rows, [&](std::size_t i) { return rows.weight(i); });
}

double average_precision(const SortedScores& rows) {
  double sum = 0.0;  // of precision, over positives
  double positives = 0.0, all = 0.0;
  for (std::size_t end = rows.size(); end > 0;) {
    const float score = rows.score(end - 1);
    double tied_positives = 0.0;
    for (; end > 0 && rows.score(end - 1) == score; --end) {
      tied_positives += rows.weight(end - 1) * static_cast<double>(rows.label(end - 1));
      all += rows.weight(end - 1);
    }
    positives += tied_positives;
    sum += tied_positives * (positives / all);
  }
  return positives > 0.0 ? sum / positives : kUndefined;
}

}  // namespace satrap
