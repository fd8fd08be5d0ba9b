#pragma once

#include <span>

#include "satrap/core/float_matrix.h"
#include "satrap/data/batch.h"
#include "satrap/pipeline/model.h"
#include "satrap/pipeline/pooled_batch.h"
#include "satrap/pipeline/row_reader.h"

namespace satrap::pipeline {

/// Predictions of examples by the model as it stands. Changes nothing: rows that were never
/// trained on count with their initial weights and are not created. No update may run meanwhile.
class Scorer {
 public:
  /// `model` must outlive it.
  explicit Scorer(Model& model) : model_(model), reader_(model.tables->access()) {}

  /// [batch.num_examples, DenseNetwork::num_outputs], valid until the next call.
  std::span<const float> score(const data::Batch& batch);

 private:
  Model& model_;
  RowReader reader_;
  PooledBatch inputs_;
  HostMatrix probabilities_;
};

}  // namespace satrap::pipeline
