#pragma once

#include <cstdint>
#include <limits>

#include "satrap/core/error.h"
#include "satrap/data/batch.h"
#include "satrap/embedding/feature_layout.h"
#include "src/embedding/index.h"

namespace satrap::embedding {

/// Bounds of the bags of feature f, in the ids of the batch: [num_examples + 1].
inline const std::int64_t* offsets_of(const data::Batch& batch, std::size_t f) {
  return batch.offsets.data() + static_cast<std::int64_t>(f) * batch.num_examples;
}

/// Checks a batch before its ids are planned: its parts must fit each other and the layout, and
/// places in its pooled output, with rows of `row_width` elements, must fit 32 bits.
inline void check_batch(const data::Batch& batch,
                        const FeatureLayout& layout,
                        std::int64_t row_width) {
  SATRAP_CHECK(batch.num_features == static_cast<std::int64_t>(layout.features.size()), "batch of ",
               batch.num_features, " features, layout of ", layout.features.size());
  SATRAP_CHECK(batch.offsets.size() == index(batch.num_features * batch.num_examples + 1),
               "batch of ", batch.num_examples, " rows has ", batch.offsets.size(), " offsets");
  SATRAP_CHECK(batch.offsets.back() == static_cast<std::int64_t>(batch.ids.size()),
               "offsets end at ", batch.offsets.back(), ", ids at ", batch.ids.size());
  SATRAP_CHECK(batch.id_weights.empty() || batch.id_weights.size() == batch.ids.size(),
               batch.id_weights.size(), " weights for ", batch.ids.size(), " ids");
  SATRAP_CHECK(batch.ids.size() <= index(std::numeric_limits<std::int32_t>::max()),
               "batch of too many ids: ", batch.ids.size());
  SATRAP_CHECK(batch.num_examples * row_width <=
                   static_cast<std::int64_t>(std::numeric_limits<std::uint32_t>::max()),
               "batch of ", batch.num_examples, " rows of ", row_width,
               " embedding columns: more than 2^32 floats; use a smaller batch");
}

}  // namespace satrap::embedding
