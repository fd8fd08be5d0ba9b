#include "satrap/pipeline/input_shape.h"

#include <cmath>
#include <cstdint>
#include <iterator>

#include "satrap/embedding/feature_layout.h"
#include "satrap/job/label_loss.h"

namespace satrap::pipeline {

dense::InputShape input_shape(const data::Schema& schema,
                              const job::EmbeddingSpecs& specs,
                              const job::ModelConfig& model) {
  dense::InputShape shape;
  shape.label_weights.clear();
  for (const data::NamedLabelConfig& label : schema.labels) {
    shape.label_weights.push_back(static_cast<float>(label.weight));
    shape.losses.push_back(job::loss_of(model, label.source));
    shape.num_classes = label.source.classes;
  }
  // Negatives that are not read make a label more likely (King, Zeng 2001, "Logistic regression in
  // rare events data", eq. 7).
  if (schema.num_labels() == 1) {
    shape.loss_shift = static_cast<float>(-std::log(schema.share_of_negatives));
  }
  const std::int64_t num_numeric = schema.num_numeric_outputs();
  const embedding::FeatureLayout layout(specs.features, specs.tables);
  const embedding::FeatureLayout on_device(specs.features, specs.tables,
                                           embedding::FeatureLayout::kDeviceColumns);
  shape.device_width = on_device.output_width;
  for (std::size_t f = 0; f < layout.features.size(); ++f) {
    const embedding::PlacedFeature& feature = layout.features[f];
    const embedding::PlacedFeature& there = on_device.features[f];
    if (feature.spec.pooling == Pooling::kSequence) {
      shape.sequences.push_back({.first_field = std::ssize(shape.field_widths),
                                 .length = feature.spec.max_length,
                                 .mask_column = num_numeric + feature.mask_column});
    }
    for (std::int64_t i = 0; i < feature.spec.max_length; ++i) {
      shape.field_widths.push_back(feature.dim);
      shape.device_columns.push_back(there.column + i * there.vector_width);
      shape.field_names.push_back(feature.spec.name);
    }
  }
  shape.num_numeric = num_numeric + layout.mask_width;
  return shape;
}

}  // namespace satrap::pipeline
