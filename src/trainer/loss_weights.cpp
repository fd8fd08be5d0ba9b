#include "src/trainer/loss_weights.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "satrap/job/label_loss.h"

namespace satrap::trainer {

LossWeights::LossWeights(const data::Schema& schema, const job::ModelConfig& model)
    : num_classes_(static_cast<std::size_t>(schema.labels.front().source.classes)),
      of_negatives_(schema.num_labels() == 1 ? schema.share_of_negatives : 1.0) {
  for (const data::NamedLabelConfig& label : schema.labels) {
    labels_.push_back({.negative = static_cast<float>(label.weight),
                       .positive = static_cast<float>(label.weight * label.source.positive_weight),
                       .is_squared = job::loss_of(model, label.source) == job::Loss::kMse});
    weighs_positives_ = weighs_positives_ || label.source.positive_weight != 1.0;
  }
}

bool LossWeights::differ_in(const data::Batch& batch) const {
  const auto is_missing = [](float label) { return std::isnan(label); };
  return weighs_positives_ || !batch.weights.empty() ||
         (labels_.size() > 1 && std::ranges::any_of(batch.labels, is_missing));
}

float LossWeights::factor_of(const data::Batch& batch, std::size_t i) const {
  const Factors& factors = labels_[i % labels_.size()];
  const float label = batch.labels[i];
  if (std::isnan(label)) return 0.0F;
  const float factor = label > 0.5F ? factors.positive : factors.negative;
  return batch.weights.empty() ? factor : factor * batch.weights[i / labels_.size()];
}

ConstFloatMatrix LossWeights::of(const data::Batch& batch, std::vector<float>& memory) const {
  if (!differ_in(batch)) return {};
  memory.resize(batch.labels.size());
  const auto of_negatives = static_cast<float>(of_negatives_);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    memory[i] = factor_of(batch, i) * (batch.labels[i] > 0.5F ? 1.0F : of_negatives);
  }
  return host_matrix(std::span<const float>(memory), batch.num_examples, batch.num_labels);
}

std::vector<double> LossWeights::sums_of(const data::Batch& batch) const {
  std::vector<double> sums(num_outputs() * kSums);
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    const auto weight = static_cast<double>(factor_of(batch, i));
    if (weight == 0.0) continue;  // the label may be missing
    for (std::size_t c = 0; c < num_classes_; ++c) {
      sums[c * kSums] += static_cast<float>(c) == batch.labels[i] ? weight : 0.0;
      sums[c * kSums + 1] += weight;
      sums[c * kSums + 2] += 1.0;
    }
    if (num_classes_ > 0) continue;
    double* const of_label = &sums[i % labels_.size() * kSums];
    of_label[0] += weight * static_cast<double>(batch.labels[i]);
    of_label[1] += weight;
    of_label[2] += 1.0;
  }
  return sums;
}

std::vector<double> LossWeights::rates_of(std::span<const double> sums) const {
  std::vector<double> rates;
  for (std::size_t l = 0; l < num_outputs(); ++l) {
    double positives = 0.0, weights = 0.0, examples = 0.0;
    for (std::size_t i = l * kSums; i < sums.size(); i += num_outputs() * kSums) {
      positives += sums[i];
      weights += sums[i + 1];
      examples += sums[i + 2];
    }
    const double average = examples == 0.0 ? 1.0 : weights / examples;
    if (num_classes_ > 0) {
      const auto num_classes = static_cast<double>(num_classes_);
      rates.push_back((positives / average + 0.5) / (examples + 0.5 * num_classes));
      continue;
    }
    if (labels_[l].is_squared) {
      rates.push_back(weights == 0.0 ? 0.0 : positives / weights);
      continue;
    }
    const bool has_both = positives > 0.0 && positives < weights;
    const double rate = (positives / average + 0.5) / (examples + 1.0);
    rates.push_back(has_both ? rate : std::clamp(rate, 0.001, 0.999));
  }
  return rates;
}

}  // namespace satrap::trainer
