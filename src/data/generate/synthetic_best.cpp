#include "satrap/data/synthetic_best.h"

#include <cmath>

#include "satrap/core/auc.h"
#include "satrap/core/error.h"

namespace satrap::data {

void BestReachableMeter::add(const std::vector<float>& probabilities,
                             const std::vector<float>& labels) {
  SATRAP_CHECK(probabilities.size() == labels.size(), probabilities.size(), " probabilities of ",
               labels.size(), " labels");
  for (std::size_t i = 0; i < labels.size(); ++i, ++rows_) {
    const auto p = static_cast<double>(probabilities[i]);
    const auto y = static_cast<double>(labels[i]);
    const double loss_if_one = -std::log(p), loss_if_zero = -std::log1p(-p);
    sum_labels_ += y;
    sum_logloss_ += y > 0.5 ? loss_if_one : loss_if_zero;
    sum_entropy_ += p * loss_if_one + (1.0 - p) * loss_if_zero;
    if (rows_ % stride_ != 0) continue;
    kept_probabilities_.push_back(probabilities[i]);
    kept_labels_.push_back(labels[i]);
  }
}

BestReachable BestReachableMeter::result() const {
  const auto rows = static_cast<double>(rows_);  // 0: everything below is NaN
  return {.rows = rows_,
          .base_rate = sum_labels_ / rows,
          .auc = auc(kept_probabilities_, kept_labels_),
          .logloss = sum_logloss_ / rows,
          .expected_auc = auc(kept_probabilities_, kept_probabilities_),
          .expected_logloss = sum_entropy_ / rows};
}

}  // namespace satrap::data
