#include "satrap/embedding/feature_layout.h"

#include <algorithm>

#include "satrap/core/error.h"

namespace satrap::embedding {

FeatureLayout::FeatureLayout(const std::vector<job::FeatureSpec>& specs,
                             const std::vector<table::TableSpec>& tables,
                             std::int64_t column_multiple) {
  SATRAP_CHECK(column_multiple >= 1, "columns in multiples of ", column_multiple);
  for (const job::FeatureSpec& spec : specs) {
    const auto table = static_cast<std::size_t>(spec.table);
    SATRAP_CHECK(table < tables.size(), "feature '", spec.name, "': no table number ", table);
    SATRAP_CHECK(
        spec.max_length >= 1 && (spec.pooling == Pooling::kSequence || spec.max_length == 1),
        "feature '", spec.name, "': max_length ", spec.max_length);
    PlacedFeature feature{.spec = spec, .dim = tables[table].dim, .weights = tables[table].weights};
    feature.column = output_width;
    feature.vector_width = (feature.dim + column_multiple - 1) / column_multiple * column_multiple;
    feature.width = feature.vector_width * spec.max_length;
    feature.mask_column = mask_width;
    output_width += feature.width;
    if (spec.pooling == Pooling::kSequence) mask_width += spec.max_length;
    features.push_back(feature);
  }
}

void copy_columns(const FeatureLayout& from_layout,
                  const float* from,
                  std::int64_t from_stride,
                  const FeatureLayout& to_layout,
                  float* to,
                  std::int64_t to_stride,
                  std::int64_t num_examples,
                  ThreadPool& pool) {
  constexpr std::int64_t kExamplesPerPiece = 512;
  const std::int64_t num_pieces = (num_examples + kExamplesPerPiece - 1) / kExamplesPerPiece;
  pool.parallel_for(num_pieces, [&](std::int64_t piece) {
    const std::int64_t begin = piece * kExamplesPerPiece;
    const std::int64_t end = std::min(num_examples, begin + kExamplesPerPiece);
    for (std::int64_t e = begin; e < end; ++e) {
      for (std::size_t f = 0; f < from_layout.features.size(); ++f) {
        const PlacedFeature& source = from_layout.features[f];
        const PlacedFeature& target = to_layout.features[f];
        const std::int64_t dim = std::min(source.vector_width, target.vector_width);
        for (std::int64_t v = 0; v < source.spec.max_length; ++v) {
          std::copy_n(from + e * from_stride + source.column + v * source.vector_width, dim,
                      to + e * to_stride + target.column + v * target.vector_width);
        }
      }
    }
  });
}

}  // namespace satrap::embedding
