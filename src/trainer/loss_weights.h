#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "satrap/core/float_matrix.h"
#include "satrap/data/batch.h"
#include "satrap/data/schema.h"

namespace satrap::trainer {

/// The factor of each loss of a batch: the weight of the example, times that of the label, times
/// its positive_weight if it is 1; 0 if it is missing. With one label negatives do not stand for
/// those that were not read, as they do in Batch::weights: InputShape::loss_shift does. Immutable.
class LossWeights {
 public:
  explicit LossWeights(const data::Schema& schema);

  /// [num_examples, num_labels] in `memory`, as DenseInput::weights takes them; without values if
  /// all examples have the factors of the labels alone.
  ConstFloatMatrix of(const data::Batch& batch, std::vector<float>& memory) const;

  /// Three sums for each label: of the factors of its positives, of all factors, and of examples
  /// whose factor is not 0.
  std::vector<double> sums_of(const data::Batch& batch) const;

  /// The share of positives of each label, from the sums of all ranks, one after the other. One
  /// half of an average example is added to the positives and to the negatives. Examples of one
  /// class, as at the start of sorted rows, say no more than that there is one of a thousand.
  std::vector<double> rates_of(std::span<const double> sums) const;

 private:
  static constexpr std::size_t kSums = 3;

  bool differ_in(const data::Batch& batch) const;
  float factor_of(const data::Batch& batch, std::size_t i) const;  // i: in labels

  struct Factors {
    float negative, positive;
  };
  std::vector<Factors> labels_;
  bool weighs_positives_ = false;
  const double of_negatives_;  // what Batch::weights says of those that are not read, undone
};

}  // namespace satrap::trainer
