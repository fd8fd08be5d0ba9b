#include "satrap/trainer/counted_rows.h"

#include <cmath>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::trainer {

CountedRows::CountedRows(const ScoredRows& all,
                         std::int64_t num_labels,
                         std::int64_t label,
                         double positive_weight)
    : rows_(all) {
  select(all, num_labels, label);
  if (positive_weight != 1.0) weigh_positives(static_cast<float>(positive_weight));
}

void CountedRows::select(const ScoredRows& all, std::int64_t num_labels, std::int64_t label) {
  const auto stride = static_cast<std::size_t>(num_labels), first = static_cast<std::size_t>(label);
  SATRAP_CHECK(all.probabilities.size() == all.labels.size() && all.labels.size() % stride == 0,
               all.probabilities.size(), " predictions and ", all.labels.size(), " values of ",
               num_labels, " labels");
  const std::size_t n = all.labels.size() / stride;
  SATRAP_CHECK(all.weights.empty() || all.weights.size() == n, all.weights.size(), " weights of ",
               n, " examples");
  if (stride == 1 && all.weights.empty()) return;
  const auto counts = [&](std::size_t i) {
    const bool is_weighed = all.weights.empty() || all.weights[i] != 0.0F;
    return is_weighed && !std::isnan(all.labels[i * stride + first]);
  };
  for (std::size_t i = 0; i < n && all_count_; ++i) all_count_ = counts(i);
  if (all_count_ && stride == 1) return;
  for (std::size_t i = 0; i < n; ++i) {
    if (!all_count_ && !counts(i)) continue;
    if (!all_count_) places_.push_back(i);
    probabilities_.push_back(all.probabilities[i * stride + first]);
    labels_.push_back(all.labels[i * stride + first]);
  }
  rows_ = {probabilities_, labels_, of(all.weights, weights_)};
}

void CountedRows::weigh_positives(float factor) {
  std::vector<float> weights(rows_.weights.begin(), rows_.weights.end());
  weights.resize(rows_.labels.size(), 1.0F);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (rows_.labels[i] == 1.0F) weights[i] *= factor;
  }
  weights_ = std::move(weights);
  rows_.weights = weights_;
}

}  // namespace satrap::trainer
