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

void check_sizes(std::span<const float> probabilities, std::span<const float> labels) {
  SATRAP_CHECK(probabilities.size() == labels.size(), "metrics of ", probabilities.size(),
               " predictions and ", labels.size(), " labels");
}

}  // namespace

Metrics compute_metrics(std::span<const float> probabilities, std::span<const float> labels) {
  check_sizes(probabilities, labels);
  Metrics metrics;
  metrics.examples = std::ssize(labels);
  if (labels.empty()) return metrics;

  double sum_loss = 0.0, sum_probabilities = 0.0, sum_labels = 0.0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    SATRAP_CHECK(labels[i] == 0.0F || labels[i] == 1.0F, "label ", i, " is ", labels[i]);
    const float p = probabilities[i];
    const auto clipped = static_cast<double>(std::clamp(p, kClip, 1.0F - kClip));
    sum_loss -= portable_log(labels[i] == 1.0F ? clipped : 1.0 - clipped);
    sum_probabilities += static_cast<double>(p);
    sum_labels += static_cast<double>(labels[i]);
  }
  const auto examples = static_cast<double>(labels.size());
  metrics.logloss = std::isnan(sum_probabilities) ? sum_probabilities : sum_loss / examples;
  metrics.auc = auc(probabilities, labels);
  const double base = entropy(sum_labels / examples);
  if (base > 0.0) metrics.ne = metrics.logloss / base;
  if (sum_labels > 0.0) metrics.calibration = sum_probabilities / sum_labels;
  return metrics;
}

std::span<const float> values_of_label(std::span<const float> values,
                                       std::int64_t num_labels,
                                       std::int64_t label,
                                       std::vector<float>& memory) {
  if (num_labels == 1) return values;
  const auto stride = static_cast<std::size_t>(num_labels);
  memory.resize(values.size() / stride);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    memory[i] = values[i * stride + static_cast<std::size_t>(label)];
  }
  return memory;
}

WindowedMetrics::WindowedMetrics(std::int64_t capacity, std::int64_t num_labels)
    : num_labels_(num_labels), capacity_(static_cast<std::size_t>(capacity * num_labels)) {
  SATRAP_CHECK(capacity >= 1, "metric window must hold at least one example, got ", capacity);
}

void WindowedMetrics::add(std::span<const float> probabilities, std::span<const float> labels) {
  check_sizes(probabilities, labels);
  SATRAP_CHECK(std::ssize(labels) % num_labels_ == 0, labels.size(), " values of ", num_labels_,
               " labels");
  if (labels.size() > capacity_) {
    probabilities = probabilities.last(capacity_);
    labels = labels.last(capacity_);
  }
  const std::size_t growth = std::min(labels.size(), capacity_ - labels_.size());
  const auto append = [&](std::vector<float>& ring, std::span<const float> values) {
    ring.insert(ring.end(), values.begin(), values.begin() + static_cast<std::ptrdiff_t>(growth));
    // The rest replaces the oldest values, in at most two pieces.
    const std::span<const float> rest = values.subspan(growth);
    const std::size_t until_end = std::min(rest.size(), capacity_ - next_);
    std::ranges::copy(rest.first(until_end), ring.begin() + static_cast<std::ptrdiff_t>(next_));
    std::ranges::copy(rest.subspan(until_end), ring.begin());
  };
  append(probabilities_, probabilities);
  append(labels_, labels);
  next_ = (next_ + labels.size() - growth) % capacity_;
}

Metrics WindowedMetrics::compute(std::int64_t label) const {
  std::vector<float> probabilities, labels;
  return compute_metrics(values_of_label(probabilities_, num_labels_, label, probabilities),
                         values_of_label(labels_, num_labels_, label, labels));
}

}  // namespace satrap::trainer
