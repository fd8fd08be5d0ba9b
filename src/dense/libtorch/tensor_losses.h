#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ATen/ATen.h>

#include "src/dense/libtorch.h"

namespace satrap::dense {

/// dense::Losses in tensors, without a graph.
class TensorLosses {
 public:
  TensorLosses(const Libtorch::TensorNetworkParts& parts, at::Device place)
      : num_classes_(parts.num_classes), shift_(parts.loss_shift) {
    std::vector<float> squared;
    for (const job::Loss loss : parts.losses) {
      squared.push_back(loss == job::Loss::kMse ? 1.0F : 0.0F);
    }
    has_squared_ = std::ranges::count(squared, 1.0F) > 0;
    has_probabilities_ = squared.empty() || std::ranges::count(squared, 0.0F) > 0;
    if (has_squared_ && has_probabilities_) is_squared_ = at::tensor(squared).to(place).ne(0);
    if (num_classes_ > 0) classes_ = at::arange(num_classes_, at::kFloat).to(place);
  }

  at::Tensor predictions(const at::Tensor& logits) const {
    if (num_classes_ > 0) return logits.softmax(1);
    if (!has_squared_) return logits.sigmoid();
    return choose(logits, [&] { return logits.sigmoid(); });
  }

  struct Computed {
    at::Tensor predictions;  // [rows, num_outputs]
    at::Tensor losses;       // [rows, num_labels]
    at::Tensor slopes;       // of each loss by the logits: [rows, num_outputs]
  };
  /// Logits [rows, num_outputs], labels [rows, num_labels].
  Computed compute(const at::Tensor& logits, const at::Tensor& labels) const {
    if (num_classes_ > 0) {
      const at::Tensor logs = logits.log_softmax(1), p = logits.softmax(1);
      return {p, logs.gather(1, labels.to(at::kLong)).neg(),
              p - labels.eq(classes_).to(at::kFloat)};
    }
    const at::Tensor z = shift_ == 0.0F ? logits : logits + shift_;
    const at::Tensor p = has_probabilities_ ? z.sigmoid() : at::Tensor();
    const at::Tensor difference = has_squared_ ? logits - labels : at::Tensor();
    const at::Tensor unshifted = shift_ == 0.0F ? p : logits.sigmoid();
    return {choose(logits, [&] { return unshifted; }),
            choose(has_squared_ ? difference.square() : at::Tensor(),
                   [&] {
                     return at::binary_cross_entropy_with_logits(z, labels, {}, {},
                                                                 at::Reduction::None);
                   }),
            choose(has_squared_ ? 2.0F * difference : at::Tensor(), [&] { return p - labels; })};
  }

 private:
  /// By column what is of mse, or of bce.
  template <class OfBce>
  at::Tensor choose(const at::Tensor& of_mse, const OfBce& of_bce) const {
    if (!has_probabilities_) return of_mse;
    return has_squared_ ? at::where(is_squared_, of_mse, of_bce()) : of_bce();
  }

  const std::int64_t num_classes_;
  const float shift_;
  bool has_squared_ = false, has_probabilities_ = true;
  at::Tensor is_squared_;  // [num_labels], if some are and some are not
  at::Tensor classes_;     // [num_classes], from 0
};

}  // namespace satrap::dense
