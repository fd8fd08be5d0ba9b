#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "satrap/core/float_matrix.h"
#include "satrap/data/batch.h"
#include "satrap/data/schema.h"
#include "satrap/job/model_config.h"

namespace satrap::trainer {

/// The factor of each loss of a batch: the weight of the example, times that of the label, times
/// its positive_weight if it is 1; 0 if it is missing. With one label negatives do not stand for
/// those that were not read, as they do in Batch::weights: InputShape::loss_shift does. Immutable.
class LossWeights {
 public:
  LossWeights(const data::Schema& schema, const job::ModelConfig& model);

  /// [num_examples, num_labels] in `memory`, as DenseInput::weights takes them; without values if
  /// all examples have the factors of the labels alone.
  ConstFloatMatrix of(const data::Batch& batch, std::vector<float>& memory) const;

  /// Sums for each output: of its labels times their factors (a class's: of the factors of its
  /// examples), of all factors, and of examples whose factor is not 0.
  std::vector<double> sums_of(const data::Batch& batch) const;

  /// What a network is to begin with (DenseNetwork::set_base_rates), from the sums of all ranks,
  /// one after the other. Of a label with loss mse the mean. Else the share of positives, or of
  /// each class: one half of an average example is added to each class, and to the negatives.
  /// Examples of one of the two classes, as at the start of sorted rows, say no more than that
  /// there is one of a thousand of the other.
  std::vector<double> rates_of(std::span<const double> sums) const;

 private:
  static constexpr std::size_t kSums = 3;

  std::size_t num_outputs() const { return num_classes_ > 0 ? num_classes_ : labels_.size(); }
  bool differ_in(const data::Batch& batch) const;
  float factor_of(const data::Batch& batch, std::size_t i) const;  // i: in labels

  struct Factors {
    float negative, positive;
    bool is_squared;  // its loss is mse
  };
  std::vector<Factors> labels_;
  std::size_t num_classes_;  // 0: there are none
  bool weighs_positives_ = false;
  const double of_negatives_;  // what Batch::weights says of those that are not read, undone
};

}  // namespace satrap::trainer
