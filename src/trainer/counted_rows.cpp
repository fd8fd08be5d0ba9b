#include "satrap/trainer/counted_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::trainer {

std::span<const float> of_classes(std::span<const float> predictions,
                                  std::span<const float> labels,
                                  std::int64_t num_classes,
                                  std::vector<float>& memory) {
  if (num_classes == 0) return predictions;
  const auto width = static_cast<std::size_t>(num_classes);
  SATRAP_CHECK(predictions.size() == labels.size() * width, predictions.size(), " predictions of ",
               width, " classes for ", labels.size(), " labels");
  memory.clear();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::span<const float> classes = predictions.subspan(i * width, width);
    const auto likeliest = std::ranges::max_element(classes) - classes.begin();
    memory.push_back(classes[static_cast<std::size_t>(labels[i])]);
    memory.push_back(static_cast<float>(likeliest));
  }
  return memory;
}

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
  const bool has_classes = stride == 1 && all.probabilities.size() == 2 * all.labels.size();
  SATRAP_CHECK((has_classes || all.probabilities.size() == all.labels.size()) &&
                   all.labels.size() % stride == 0,
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
    const std::size_t width = has_classes ? 2 : 1;
    for (std::size_t k = 0; k < width; ++k) {
      probabilities_.push_back(all.probabilities[(i * stride + first) * width + k]);
    }
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
