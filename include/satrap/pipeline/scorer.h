#pragma once

#include <span>
#include <vector>

#include "satrap/data/batch.h"
#include "satrap/pipeline/model.h"
#include "satrap/pipeline/row_reader.h"

namespace satrap::pipeline {

/// Probabilities of rows by the model as it stands. Changes nothing: rows that were never trained
/// on count with their initial weights and are not created. No update may run meanwhile.
class Scorer {
 public:
  /// `model` must outlive it.
  explicit Scorer(Model& model) : model_(model), reader_(model.store->access()) {}

  /// [batch.num_examples, batch.num_labels], valid until the next call.
  std::span<const float> score(const data::Batch& batch);

 private:
  Model& model_;
  RowReader reader_;
  std::vector<float> pooled_, mask_, joined_, probabilities_;
};

/// The numeric input of the dense network: the batch's numbers, then the sequence masks. Fills and
/// returns `joined` only if there are masks.
std::span<const float> join_numeric(const data::Batch& batch,
                                    std::span<const float> mask,
                                    std::vector<float>& joined);

}  // namespace satrap::pipeline
