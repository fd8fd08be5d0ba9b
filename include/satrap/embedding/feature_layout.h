#pragma once

#include <cstdint>
#include <vector>

#include "satrap/core/thread_pool.h"
#include "satrap/job/feature_spec.h"
#include "satrap/table/table_spec.h"

namespace satrap::embedding {

/// One feature and its place in the outputs.
struct PlacedFeature {
  job::FeatureSpec spec;
  std::int64_t dim = 0;                  // of a row of its table
  FloatType weights = FloatType::kFp32;  // in the memory that pooling reads
  std::int64_t column = 0;               // first, in the pooled output
  std::int64_t vector_width = 0;         // columns of one of its vectors: dim, and padding
  std::int64_t width = 0;        // columns: vector_width, for a sequence max_length times it
  std::int64_t mask_column = 0;  // first, in the mask; sequences only
};

/// Place of each feature's vectors in the pooled output of a batch, one feature after the other in
/// the order of the batch: the only code that sums their widths. An example has output_width
/// floats; its mask, a 1 or 0 for each place of its sequences, has mask_width.
///
/// In host memory the vectors are contiguous. On a device every vector begins at a multiple of
/// kDeviceColumns and is as wide as a row is there: the padding is zero in the output and must be
/// zero in its gradient.
struct FeatureLayout {
  static constexpr std::int64_t kDeviceColumns = 4;  // as RowLayout::padded_dim, BagFeature::column

  std::vector<PlacedFeature> features;
  std::int64_t output_width = 0;
  std::int64_t mask_width = 0;

  /// Every vector takes a multiple of `column_multiple` columns.
  FeatureLayout(const std::vector<job::FeatureSpec>& specs,
                const std::vector<table::TableSpec>& tables,
                std::int64_t column_multiple = 1);
};

/// Copies the vectors of all features between the host's layout and a device's.
void copy_columns(const FeatureLayout& from_layout,
                  const float* from,
                  std::int64_t from_stride,
                  const FeatureLayout& to_layout,
                  float* to,
                  std::int64_t to_stride,
                  std::int64_t num_examples,
                  ThreadPool& pool);

}  // namespace satrap::embedding
