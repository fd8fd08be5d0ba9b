#pragma once

#include "satrap/data/schema.h"

namespace satrap::fuzz {

/// A CSV file with a header whose columns are of every kind: quotes, bags, weights, ranges.
inline data::Schema csv_schema() {
  data::DataConfig config;
  data::SchemaConfig& schema = config.schema;
  schema.missing = {"?", "NA"};
  schema.labels.resize(3);
  schema.labels[0].source.column = "y";
  schema.labels[1].source.column = "sold";
  schema.labels[1].source.positive = {"yes"};
  schema.labels[1].source.negative = {"no"};
  schema.labels[2].source.column = "stars";
  schema.labels[2].source.threshold = {3.5};
  schema.numeric.resize(2);
  schema.numeric[0].name = "age";
  schema.numeric[1].name = "price";
  schema.numeric[1].clip = {-1, 1000};
  schema.numeric[1].missing_indicator = true;
  schema.features.resize(5);
  schema.features[0].name = "user";
  schema.features[1].name = "shop";
  schema.features[1].type = data::IdType::kInt;
  schema.features[1].missing = data::MissingId::kOwnId;
  schema.features[2].name = "code";
  schema.features[2].type = data::IdType::kHex;
  data::FeatureConfig& tags = schema.features[3];
  tags.name = "tags";
  tags.separator = "|";
  tags.weight_separator = ":";
  tags.max_length = 3;
  tags.keep = data::KeptIds::kLast;
  schema.features[4].name = "range";
  schema.features[4].column = "age";
  schema.features[4].buckets.boundaries = {18, 65};
  schema.features.resize(6);
  schema.features[5].name = "ts";
  schema.features[5].part = data::DatePart::kHour;
  return data::resolve_schema(config);
}

}  // namespace satrap::fuzz
