#include "satrap/core/auc.h"

#include <cmath>
#include <cstddef>
#include <limits>

#include "satrap/core/error.h"
#include "satrap/core/sorted_scores.h"

namespace satrap {

double auc(std::span<const float> scores, std::span<const float> labels) {
  SATRAP_CHECK(scores.size() == labels.size(), "AUC of ", scores.size(), " scores and ",
               labels.size(), " labels");
  constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    SATRAP_CHECK(labels[i] >= 0.0F && labels[i] <= 1.0F, "label ", i, " is ", labels[i]);
    if (std::isnan(scores[i])) return kUndefined;
  }
  const SortedScores rows(scores, labels);

  double won = 0.0;  // pairs in which the positive scores higher, ties half
  double positives = 0.0, negatives = 0.0;
  for (std::size_t i = 0; i < rows.size();) {
    const float score = rows.score(i);
    double tied_positives = 0.0, tied_negatives = 0.0;
    for (; i < rows.size() && rows.score(i) == score; ++i) {
      const double label = static_cast<double>(rows.label(i));
      tied_positives += label;
      tied_negatives += 1.0 - label;
    }
    won += tied_positives * (negatives + 0.5 * tied_negatives);
    positives += tied_positives;
    negatives += tied_negatives;
  }
  if (positives <= 0.0 || negatives <= 0.0) return kUndefined;
  return won / (positives * negatives);
}

}  // namespace satrap
