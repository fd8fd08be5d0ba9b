#include "satrap/trainer/metrics.h"

#include <algorithm>
#include <cmath>

#include "satrap/core/auc.h"
#include "satrap/core/error.h"
#include "satrap/core/portable_math.h"

namespace satrap::trainer {
namespace {

/// Logloss of always predicting the mean label: its entropy. 0 with one class only.
double entropy(double mean_label) {
  if (mean_label <= 0.0 || mean_label >= 1.0) return 0.0;
  return -mean_label * portable_log(mean_label) - (1.0 - mean_label) * portable_log1p(-mean_label);
}

struct Sums {
  double loss = 0.0, probabilities = 0.0, labels = 0.0, weights = 0.0;

  void add(float p, float label, double weight) {
    SATRAP_CHECK(label == 0.0F || label == 1.0F, "label is ", label);
    const auto clipped = static_cast<double>(std::clamp(p, kClip, 1.0F - kClip));
    loss -= weight * portable_log(label == 1.0F ? clipped : 1.0 - clipped);
    probabilities += weight * static_cast<double>(p);
    labels += weight * static_cast<double>(label);
    weights += weight;
  }
};

/// Equal predictions are taken together, so that the order of the rows changes no bit.
double brier_score(const SortedScores& rows) {
  double sum = 0.0, weights = 0.0;
  for (std::size_t i = 0; i < rows.size();) {
    const float score = rows.score(i);
    double positives = 0.0, negatives = 0.0;
    for (; i < rows.size() && rows.score(i) == score; ++i) {
      (rows.label(i) == 1.0F ? positives : negatives) += rows.weight(i);
    }
    const double p = static_cast<double>(score);
    sum += positives * (1.0 - p) * (1.0 - p) + negatives * p * p;
    weights += positives + negatives;
  }
  return sum / weights;
}

/// The newest values take the place of the oldest, `next` and those after it, in at most two
/// pieces.
void append(std::vector<float>& ring,
            std::span<const float> values,
            std::size_t capacity,
            std::size_t next) {
  if (values.empty()) return;
  const std::size_t growth = std::min(values.size(), capacity - ring.size());
  ring.insert(ring.end(), values.begin(), values.begin() + static_cast<std::ptrdiff_t>(growth));
  const std::span<const float> rest = values.subspan(growth);
  const std::size_t until_end = std::min(rest.size(), capacity - next);
  std::ranges::copy(rest.first(until_end), ring.begin() + static_cast<std::ptrdiff_t>(next));
  std::ranges::copy(rest.subspan(until_end), ring.begin());
}

}  // namespace

Metrics compute_metrics(const ScoredRows& rows) {
  const auto& [probabilities, labels, weights] = rows;
  SATRAP_CHECK(probabilities.size() == labels.size(), "metrics of ", probabilities.size(),
               " predictions and ", labels.size(), " labels");
  Metrics metrics;
  metrics.examples = std::ssize(labels);
  if (labels.empty()) return metrics;
  const bool has_nan = std::ranges::any_of(probabilities, [](float p) { return std::isnan(p); });
  const SortedScores sorted =
      has_nan ? SortedScores({}, {}) : SortedScores(probabilities, labels, weights);

  Sums sums;
  if (sorted.is_weighted()) {
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      sums.add(sorted.score(i), sorted.label(i), sorted.weight(i));
    }
  } else {
    for (std::size_t i = 0; i < labels.size(); ++i) sums.add(probabilities[i], labels[i], 1.0);
  }
  metrics.weight = sums.weights;
  if (has_nan) return metrics;
  metrics.logloss = sums.loss / sums.weights;
  metrics.auc = auc(sorted);
  metrics.ap = average_precision(sorted);
  metrics.brier = brier_score(sorted);
  const double base = entropy(sums.labels / sums.weights);
  if (base > 0.0) metrics.ne = metrics.logloss / base;
  if (sums.labels > 0.0) metrics.calibration = sums.probabilities / sums.labels;
  return metrics;
}

WindowedMetrics::WindowedMetrics(std::int64_t capacity, std::int64_t num_labels)
    : num_labels_(static_cast<std::size_t>(num_labels)),
      capacity_(static_cast<std::size_t>(capacity)) {
  SATRAP_CHECK(capacity >= 1, "metric window must hold at least one example, got ", capacity);
}

void WindowedMetrics::add(ScoredRows rows) {
  SATRAP_CHECK(
      rows.probabilities.size() == rows.labels.size() && rows.labels.size() % num_labels_ == 0,
      rows.probabilities.size(), " predictions and ", rows.labels.size(), " values of ",
      num_labels_, " labels");
  std::size_t n = rows.labels.size() / num_labels_;
  SATRAP_CHECK(n == 0 || (rows.weights.empty() ? weights_.empty() : rows.weights.size() == n),
               rows.weights.size(), " weights of ", n, " examples");
  SATRAP_CHECK(rows.weights.empty() || weights_.size() * num_labels_ == labels_.size(),
               "the first examples had no weights");
  if (n > capacity_) {
    n = capacity_;
    rows = {rows.probabilities.last(n * num_labels_), rows.labels.last(n * num_labels_),
            rows.weights.empty() ? rows.weights : rows.weights.last(n)};
  }
  const std::size_t growth = std::min(n, capacity_ - labels_.size() / num_labels_);
  append(probabilities_, rows.probabilities, capacity_ * num_labels_, next_ * num_labels_);
  append(labels_, rows.labels, capacity_ * num_labels_, next_ * num_labels_);
  append(weights_, rows.weights, capacity_, next_);
  next_ = (next_ + n - growth) % capacity_;
}

Metrics WindowedMetrics::compute(std::int64_t label, double positive_weight) const {
  const CountedRows counted({probabilities_, labels_, weights_},
                            static_cast<std::int64_t>(num_labels_), label, positive_weight);
  return compute_metrics(counted.rows());
}

}  // namespace satrap::trainer
