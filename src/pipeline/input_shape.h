#pragma once

#include "satrap/data/schema.h"
#include "satrap/dense/dense_network.h"
#include "satrap/job/embedding_specs.h"

namespace satrap::pipeline {

/// What the network of a job is given: numbers, and the vectors of its features.
dense::InputShape input_shape(const data::Schema& schema, const job::EmbeddingSpecs& specs);

}  // namespace satrap::pipeline
