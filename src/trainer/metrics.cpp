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

double weight_of(const ScoredRows& rows, std::size_t i) {
  return rows.weights.empty() ? 1.0 : static_cast<double>(rows.weights[i]);
}

void add_number_metrics(const ScoredRows& rows, Metrics& metrics) {
  double squares = 0.0, sizes = 0.0, labels = 0.0, weights = 0.0;
  for (std::size_t i = 0; i < rows.labels.size(); ++i) {
    const double weight = weight_of(rows, i), label = static_cast<double>(rows.labels[i]);
    const double off = static_cast<double>(rows.probabilities[i]) - label;
    squares += weight * off * off;
    sizes += weight * std::fabs(off);
    labels += weight * label;
    weights += weight;
  }
  const double mean = labels / weights;
  double variance = 0.0;
  for (std::size_t i = 0; i < rows.labels.size(); ++i) {
    const double off = static_cast<double>(rows.labels[i]) - mean;
    variance += weight_of(rows, i) * off * off;
  }
  metrics.weight = weights;
  metrics.loss = squares / weights;
  metrics.rmse = std::sqrt(metrics.loss);
  metrics.mae = sizes / weights;
  if (variance > 0.0) metrics.r2 = 1.0 - squares / variance;
}

void add_class_metrics(const ScoredRows& rows, Metrics& metrics) {
  double loss = 0.0, hits = 0.0, weights = 0.0;
  bool has_nan = false;
  std::vector<double> of_class;  // weights
  for (std::size_t i = 0; i < rows.labels.size(); ++i) {
    const double weight = weight_of(rows, i);
    const float p = rows.probabilities[2 * i], likeliest = rows.probabilities[2 * i + 1];
    has_nan = has_nan || std::isnan(p);
    if (!has_nan) loss -= weight * portable_log(static_cast<double>(std::max(p, kClip)));
    hits += likeliest == rows.labels[i] ? weight : 0.0;
    weights += weight;
    const auto label = static_cast<std::size_t>(rows.labels[i]);
    of_class.resize(std::max(of_class.size(), label + 1));
    of_class[label] += weight;
  }
  metrics.weight = weights;
  if (has_nan) return;
  metrics.loss = metrics.logloss = loss / weights;
  metrics.accuracy = hits / weights;
  double base = 0.0;
  for (const double in_class : of_class) {
    if (in_class > 0.0) base -= in_class / weights * portable_log(in_class / weights);
  }
  if (base > 0.0) metrics.ne = metrics.logloss / base;
}

}  // namespace

std::span<const NamedMetric> metrics_of(job::Loss loss) {
  static constexpr NamedMetric kOfBinary[] = {
      {"auc", &Metrics::auc}, {"logloss", &Metrics::logloss},
      {"ne", &Metrics::ne},   {"calibration", &Metrics::calibration},
      {"ap", &Metrics::ap},   {"brier", &Metrics::brier}};
  static constexpr NamedMetric kOfNumbers[] = {
      {"rmse", &Metrics::rmse}, {"mae", &Metrics::mae}, {"r2", &Metrics::r2}};
  static constexpr NamedMetric kOfClasses[] = {
      {"accuracy", &Metrics::accuracy}, {"logloss", &Metrics::logloss}, {"ne", &Metrics::ne}};
  if (loss == job::Loss::kMse) return kOfNumbers;
  return loss == job::Loss::kSoftmax ? std::span<const NamedMetric>(kOfClasses) : kOfBinary;
}

std::span<const NamedMetric> slice_metrics_of(job::Loss loss) {
  const std::span<const NamedMetric> all = metrics_of(loss);
  return all.first(std::min<std::size_t>(all.size(), 4));
}

Metrics compute_metrics(const ScoredRows& rows, job::Loss loss) {
  const auto& [probabilities, labels, weights] = rows;
  const std::size_t num_scores = loss == job::Loss::kSoftmax ? 2 : 1;
  SATRAP_CHECK(probabilities.size() == num_scores * labels.size(), "metrics of ",
               probabilities.size(), " predictions and ", labels.size(), " labels");
  Metrics metrics;
  metrics.examples = std::ssize(labels);
  if (labels.empty()) return metrics;
  if (loss == job::Loss::kMse) {
    add_number_metrics(rows, metrics);
    return metrics;
  }
  if (loss == job::Loss::kSoftmax) {
    add_class_metrics(rows, metrics);
    return metrics;
  }
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
  metrics.loss = metrics.logloss = sums.loss / sums.weights;
  metrics.auc = auc(sorted);
  metrics.ap = average_precision(sorted);
  metrics.brier = brier_score(sorted);
  const double base = entropy(sums.labels / sums.weights);
  if (base > 0.0) metrics.ne = metrics.logloss / base;
  if (sums.labels > 0.0) metrics.calibration = sums.probabilities / sums.labels;
  return metrics;
}

WindowedMetrics::WindowedMetrics(std::int64_t capacity, std::int64_t num_labels, bool has_classes)
    : num_labels_(static_cast<std::size_t>(num_labels)),
      num_scores_(has_classes ? 2 : num_labels_),
      capacity_(static_cast<std::size_t>(capacity)) {
  SATRAP_CHECK(capacity >= 1, "metric window must hold at least one example, got ", capacity);
}

void WindowedMetrics::add(ScoredRows rows) {
  std::size_t n = rows.labels.size() / num_labels_;
  SATRAP_CHECK(
      rows.probabilities.size() == n * num_scores_ && rows.labels.size() % num_labels_ == 0,
      rows.probabilities.size(), " predictions and ", rows.labels.size(), " values of ",
      num_labels_, " labels");
  SATRAP_CHECK(n == 0 || (rows.weights.empty() ? weights_.empty() : rows.weights.size() == n),
               rows.weights.size(), " weights of ", n, " examples");
  SATRAP_CHECK(rows.weights.empty() || weights_.size() * num_labels_ == labels_.size(),
               "the first examples had no weights");
  if (n > capacity_) {
    n = capacity_;
    rows = {rows.probabilities.last(n * num_scores_), rows.labels.last(n * num_labels_),
            rows.weights.empty() ? rows.weights : rows.weights.last(n)};
  }
  const std::size_t growth = std::min(n, capacity_ - labels_.size() / num_labels_);
  append(probabilities_, rows.probabilities, capacity_ * num_scores_, next_ * num_scores_);
  append(labels_, rows.labels, capacity_ * num_labels_, next_ * num_labels_);
  append(weights_, rows.weights, capacity_, next_);
  next_ = (next_ + n - growth) % capacity_;
}

Metrics WindowedMetrics::compute(std::int64_t label, double positive_weight, job::Loss loss) const {
  const CountedRows counted({probabilities_, labels_, weights_},
                            static_cast<std::int64_t>(num_labels_), label, positive_weight);
  return compute_metrics(counted.rows(), loss);
}

}  // namespace satrap::trainer
