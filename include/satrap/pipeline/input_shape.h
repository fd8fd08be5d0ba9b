#pragma once

#include "satrap/data/schema.h"
#include "satrap/dense/dense_network.h"
#include "satrap/job/embedding_specs.h"
#include "satrap/job/model_config.h"

namespace satrap::pipeline {

/// What the network of a job is given: numbers, and the vectors of its features; and its outputs.
dense::InputShape input_shape(const data::Schema& schema,
                              const job::EmbeddingSpecs& specs,
                              const job::ModelConfig& model);

}  // namespace satrap::pipeline
