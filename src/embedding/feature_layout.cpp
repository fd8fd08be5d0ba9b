#include "satrap/embedding/feature_layout.h"

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

}  // namespace satrap::embedding
