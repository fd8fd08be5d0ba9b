#pragma once

#include <cstdint>
#include <vector>

#include "satrap/data/texts.h"

namespace satrap::data {

/// One batch of examples in host memory, ready for the embedding plan and the dense network.
/// Reused from step to step: filling it does not allocate once the vectors have grown.
///
/// Ids are a feature-major CSR (the layout of TorchRec's KeyedJaggedTensor): the bag of feature f
/// in example r is ids[offsets[f * num_examples + r] .. offsets[f * num_examples + r + 1]).
struct Batch {
  std::int64_t num_examples = 0;
  std::int64_t num_features = 0;
  std::int64_t num_numeric = 0;
  std::int64_t num_labels = 1;
  std::vector<float> labels;          // [num_examples, num_labels] row-major, as RowBlock's; of
                                      // several one may be missing, NaN
  std::vector<float> numeric;         // [num_examples, num_numeric] row-major, transformed, finite
  std::vector<std::int64_t> offsets;  // [num_features * num_examples + 1], ascending from 0
  std::vector<std::uint64_t> ids;     // [offsets.back()]
  std::vector<float> id_weights;      // [offsets.back()], or empty: every weight is 1
  std::vector<std::uint64_t> groups;  // [num_examples] by data.group_by, kNoGroup if the value
                                      // is missing; empty without group_by
  std::vector<float> weights;         // [num_examples], finite and >= 0; empty: every weight is 1
  std::vector<Texts> kept;            // [schema.kept] of num_examples each
};

}  // namespace satrap::data
