#include "satrap/pipeline/scorer.h"

namespace satrap::pipeline {

std::span<const float> Scorer::score(const data::Batch& batch) {
  reader_.look_up(batch, inputs_);
  probabilities_.resize(batch.num_examples, model_.network->num_outputs());
  const PooledBatch& inputs = inputs_;
  model_.network->predict({.num_examples = batch.num_examples,
                           .numeric = inputs.numeric(),
                           .pooled = inputs.pooled(),
                           .labels = {}},
                          probabilities_.view());
  return probabilities_.values();
}

}  // namespace satrap::pipeline
