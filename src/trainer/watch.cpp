#include "src/trainer/watch.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace satrap::trainer {
namespace {

constexpr double kEnoughExamples = 200.0;  // of each class, for metrics to compare
constexpr double kRise = 1.1;              // of the normalised loss, above its lowest value
constexpr double kAucGap = 0.05;

constexpr const char* kWhatToLookAt =
    "look at the learning rates (tables, dense_optimizer), at train.staleness, and at inputs whose "
    "value never changes or is far from 0";

/// The loss over that of always predicting the mean; NaN where undefined.
double normalised_loss(const Metrics& metrics) {
  return std::isnan(metrics.ne) ? 1.0 - metrics.r2 : metrics.ne;
}

}  // namespace

TrainingWatch::TrainingWatch(const data::Schema& schema)
    : labels_(schema.labels),
      lacks_negatives_(schema.share_of_negatives < 1.0),
      num_positive_(schema.labels.size()),
      num_negative_(schema.labels.size()),
      first_(schema.labels.size()) {}

std::vector<std::string> TrainingWatch::add_labels(std::span<const float> labels,
                                                   std::span<const float> weights) {
  num_seen_ += std::ssize(labels) / std::ssize(labels_);
  if (has_judged_labels_) return {};
  for (std::size_t i = 0; i < labels.size() && num_examples_ < kFirstExamples; ++i) {
    const std::size_t label = i % labels_.size();
    const bool is_weighed = weights.empty() || weights[i / labels_.size()] > 0.0F;
    const bool counts = is_weighed && !std::isnan(labels[i]);
    if (counts && num_negative_[label] == 0) first_[label] = labels[i];
    const bool is_positive =
        labels_[label].source.is_binary() ? labels[i] > 0.5F : labels[i] != first_[label];
    num_positive_[label] += counts && is_positive ? 1 : 0;
    num_negative_[label] += counts && !is_positive ? 1 : 0;
    num_examples_ += label + 1 == labels_.size() ? 1 : 0;
  }
  return num_examples_ < kFirstExamples ? std::vector<std::string>() : end_labels();
}

std::vector<std::string> TrainingWatch::end_labels() {
  std::vector<std::string> warnings;
  if (has_judged_labels_ || num_examples_ == 0) return warnings;
  has_judged_labels_ = true;
  for (std::size_t l = 0; l < labels_.size(); ++l) {
    if (num_positive_[l] == 0 || num_negative_[l] == 0) {
      warnings.push_back(describe(l));
    }
  }
  return warnings;
}

std::string TrainingWatch::describe(std::size_t label) const {
  const data::NamedLabelConfig& config = labels_[label];
  const data::LabelConfig& source = config.source;
  const std::string of =
      source.column == config.name ? "" : fmt::format(" (column {})", source.column);
  const bool is_one = num_positive_[label] != 0;
  if (!is_one && num_negative_[label] == 0) {
    return fmt::format(
        "label '{}'{} is missing or has weight 0 in all of the first {} examples, "
        "so nothing can be learned from it",
        config.name, of, num_examples_);
  }
  const float value = source.is_binary() ? (is_one ? 1.0F : 0.0F) : first_[label];
  std::string text = fmt::format(
      "label '{}'{} is {} in all of the first {} examples, so nothing can be learned from it",
      config.name, of, value, num_examples_);
  if (!source.is_binary()) return text;
  if (!is_one && !source.positive.empty()) {
    return text + fmt::format(": no row has the text of `positive`, \"{}\"",
                              fmt::join(source.positive, "\" or \""));
  }
  if (!source.threshold.empty()) {
    return text + fmt::format(": no number is {} `threshold` {}", is_one ? "below" : "at or above",
                              source.threshold.front());
  }
  if (is_one && lacks_negatives_) return text + "; data.train.negatives leaves out the others";
  if (is_one && source.positive.empty()) {
    return text +
           "; rows with other labels, such as -1, are bad rows and skipped: `positive` or "
           "`threshold` says what means 1";
  }
  return text;
}

std::vector<std::string> TrainingWatch::add_training(const Metrics& window) {
  const std::int64_t num_labelled = num_positive_[0] + num_negative_[0];
  const double rate = static_cast<double>(num_positive_[0]) /
                      static_cast<double>(std::max<std::int64_t>(num_labelled, 1));
  const double share = labels_.front().source.is_binary() ? std::min(rate, 1.0 - rate) : 0.5;
  const double fewer = share * static_cast<double>(window.examples);
  const double now = normalised_loss(window);
  if (fewer < kEnoughExamples || !(now > 0.0)) return {};
  last_ = window;
  has_first_ = num_seen_ < 2 * window.examples;
  if (!(normalised_loss(best_) <= now)) best_ = window;
  const double best = normalised_loss(best_);
  if (has_risen_ || now <= kRise * best) return {};
  has_risen_ = true;
  return {fmt::format(
      "the training loss has risen, from {:.4f} to {:.4f} ({:.3f} to {:.3f} times that of always "
      "predicting the mean): {}",
      best_.loss, window.loss, best, now, kWhatToLookAt)};
}

std::vector<std::string> TrainingWatch::add_evaluation(double auc) {
  // Training scores every example before it learns from it, the first ones with a new model.
  if (has_first_ || is_behind_ || !(last_.auc < auc - kAucGap)) return {};
  is_behind_ = true;
  return {fmt::format("the AUC of training, {:.4f}, is far below that of evaluation, {:.4f}: {}",
                      last_.auc, auc, kWhatToLookAt)};
}

}  // namespace satrap::trainer
