#include "src/dense/losses.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "satrap/core/error.h"
#include "satrap/core/portable_math.h"
#include "src/dense/ops.h"

namespace satrap::dense {
namespace {

float probability_of(float logit) {
  return static_cast<float>(portable_sigmoid(static_cast<double>(logit)));
}

// log(1 + e^-size), for size >= 0 or NaN, which propagates.
double softplus_of_minus(double size) {
  return size < 700.0 ? portable_log1p(portable_exp(-size)) : (size > 0.0 ? 0.0 : size);
}

/// log(1 + e^z) - label z without overflow; NaN and infinity propagate.
double binary_cross_entropy(float z, float label) {
  const float positive = z < 0.0F ? 0.0F : z;
  return static_cast<double>(positive - z * label) +
         softplus_of_minus(std::fabs(static_cast<double>(z)));
}

double squared_error(float z, float label) {
  const double difference = static_cast<double>(z) - static_cast<double>(label);
  return difference * difference;
}

}  // namespace

Losses::Losses(const InputShape& shape)
    : are_squared_(static_cast<std::size_t>(shape.num_labels())),
      num_classes_(shape.num_classes),
      shift_(shape.loss_shift) {
  SATRAP_CHECK(shape.losses.empty() || std::ssize(shape.losses) == shape.num_labels(),
               shape.losses.size(), " losses of ", shape.num_labels(), " labels");
  for (std::size_t l = 0; l < shape.losses.size(); ++l) {
    are_squared_[l] = shape.losses[l] == job::Loss::kMse;
    SATRAP_CHECK((shape.losses[l] == job::Loss::kSoftmax) == (num_classes_ > 0), "a label of ",
                 num_classes_, " classes has another loss");
  }
  SATRAP_CHECK(num_classes_ == 0 || (shape.num_labels() == 1 && shape.losses.size() == 1),
               "classes beside other labels");
}

void Losses::predict(ConstMatrix logits, float* predictions) const {
  for (std::int64_t r = 0; r < logits.rows; ++r, predictions += logits.cols) {
    const float* const z = logits.row(r);
    if (num_classes_ > 0) {
      std::copy_n(z, num_classes_, predictions);
      softmax(predictions, num_classes_);
      continue;
    }
    for (std::int64_t c = 0; c < logits.cols; ++c) {
      predictions[c] = are_squared_[static_cast<std::size_t>(c)] ? z[c] : probability_of(z[c]);
    }
  }
}

double Losses::compute(ConstMatrix logits,
                       const float* labels,
                       ConstMatrix weights,
                       float factor,
                       float* predictions,
                       Matrix dlogits) const {
  if (num_classes_ > 0) {
    return compute_classes(logits, labels, weights, factor, predictions, dlogits);
  }
  double loss = 0.0;
  for (std::int64_t r = 0; r < logits.rows; ++r) {
    for (std::int64_t c = 0; c < logits.cols; ++c, ++labels, ++predictions) {
      const float logit = logits.row(r)[c], weight = weights.row(r)[c];
      const float label = weight == 0.0F ? 0.0F : *labels;
      if (are_squared_[static_cast<std::size_t>(c)]) {
        loss += static_cast<double>(weight) * squared_error(logit, label);
        *predictions = logit;
        dlogits.row(r)[c] = 2.0F * (logit - label) * (factor * weight);
        continue;
      }
      const float z = logit + shift_;
      loss += static_cast<double>(weight) * binary_cross_entropy(z, label);
      *predictions = probability_of(logit);
      const float p = shift_ == 0.0F ? *predictions : probability_of(z);
      dlogits.row(r)[c] = (p - label) * (factor * weight);
    }
  }
  return loss;
}

double Losses::compute_classes(ConstMatrix logits,
                               const float* labels,
                               ConstMatrix weights,
                               float factor,
                               float* predictions,
                               Matrix dlogits) const {
  double loss = 0.0;
  for (std::int64_t r = 0; r < logits.rows; ++r, predictions += num_classes_) {
    const float* const z = logits.row(r);
    const float weight = *weights.row(r);
    const auto label = weight == 0.0F ? 0 : static_cast<std::int64_t>(labels[r]);
    SATRAP_CHECK(label >= 0 && label < num_classes_, "class ", label, " of ", num_classes_);
    std::copy_n(z, num_classes_, predictions);
    const SoftmaxSum sum = softmax(predictions, num_classes_);
    const double below = static_cast<double>(z[label] - sum.most);
    const double log_sum = sum.powers > 0.0 ? portable_log(sum.powers) : sum.powers;  // NaN stays
    loss += static_cast<double>(weight) * (log_sum - below);
    float* const d = dlogits.row(r);
    for (std::int64_t c = 0; c < num_classes_; ++c) d[c] = predictions[c] * (factor * weight);
    d[label] = (predictions[label] - 1.0F) * (factor * weight);
  }
  return loss;
}

std::vector<double> Losses::constants_of(std::span<const double> rates) const {
  const std::size_t num_outputs =
      num_classes_ > 0 ? static_cast<std::size_t>(num_classes_) : are_squared_.size();
  SATRAP_CHECK(rates.size() == num_outputs, rates.size(), " rates of ", num_outputs, " outputs");
  std::vector<double> constants;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (num_classes_ == 0 && are_squared_[i]) {
      constants.push_back(rates[i]);
      continue;
    }
    SATRAP_CHECK(rates[i] > 0.0 && rates[i] < 1.0, "output ", i, " has the mean ", rates[i]);
    constants.push_back(portable_log(num_classes_ > 0 ? rates[i] : rates[i] / (1.0 - rates[i])));
  }
  return constants;
}

}  // namespace satrap::dense
