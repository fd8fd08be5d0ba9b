#pragma once

#include <cstdint>
#include <vector>

#include "satrap/job/feature_spec.h"
#include "satrap/table/table_spec.h"

namespace satrap::embedding {

/// One feature with its place in the outputs.
struct PlacedFeature {
  job::FeatureSpec spec;
  std::int64_t dim = 0;                  // of a row of its table
  FloatType weights = FloatType::kFp32;  // as they are where they are pooled from
  std::int64_t column = 0;               // first, in the pooled output
  std::int64_t width = 0;                // columns: dim, of a sequence max_length times dim
  std::int64_t mask_column = 0;          // first, in the mask; sequences only
};

/// Where the vectors of features are in the pooled rows of a batch, one feature after the other in
/// the order of the batch: the only place that adds their widths up. A row has output_width floats;
/// its mask, a 1 or 0 for each place of its sequences, has mask_width.
struct FeatureLayout {
  std::vector<PlacedFeature> features;
  std::int64_t output_width = 0;
  std::int64_t mask_width = 0;

  FeatureLayout(const std::vector<job::FeatureSpec>& specs,
                const std::vector<table::TableSpec>& tables);
};

}  // namespace satrap::embedding
