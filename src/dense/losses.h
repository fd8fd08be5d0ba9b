#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "satrap/dense/dense_network.h"
#include "src/dense/matrix.h"

namespace satrap::dense {

/// The losses of a network's outputs, and the predictions that belong to them:
///   bce      log(1 + e^z) - y z with the label y of 0 or 1; the prediction is sigmoid(z)
///   mse      (z - y)^2; the prediction is z
///   softmax  log(sum_c e^z_c) - z_y with the number y of a class; predictions are softmax(z)
/// where z is the logit: what the network gives. Immutable.
class Losses {
 public:
  explicit Losses(const InputShape& shape);

  /// `predictions`: [logits.rows, num_outputs], side by side.
  void predict(ConstMatrix logits, float* predictions) const;

  /// Labels are [logits.rows, num_labels], side by side; `weights`, of the same shape, multiply
  /// each loss (stride 0: one row of weights for all). Returns the sum over all; dlogits are its
  /// gradients times `factor`. A label of weight 0 may be NaN and counts nowhere. Loss and gradient
  /// of bce are those of logit + InputShape::loss_shift, predictions those of the logit.
  double compute(ConstMatrix logits,
                 const float* labels,
                 ConstMatrix weights,
                 float factor,
                 float* predictions,
                 Matrix dlogits) const;

  /// The logits that predict these mean labels, or shares of classes: [num_outputs].
  std::vector<double> constants_of(std::span<const double> rates) const;

 private:
  double compute_classes(ConstMatrix logits,
                         const float* labels,
                         ConstMatrix weights,
                         float factor,
                         float* predictions,
                         Matrix dlogits) const;

  std::vector<bool> are_squared_;  // [num_labels]: mse
  std::int64_t num_classes_;       // 0: there are none
  float shift_;
};

}  // namespace satrap::dense
