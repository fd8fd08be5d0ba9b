#include "satrap/data/schema.h"

#include <algorithm>
#include <unordered_map>

#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "src/data/terms/column_range.h"

namespace satrap::data {
namespace {

std::string remedy_for(const NumericConfig&) { return "; write a range of as many names"; }
std::string remedy_for(const FeatureConfig& config) {
  return concat("; to make one bag or sequence of them write `columns: ", config.column, "`");
}

/// Adds one copy of `config` per column that it means, with name and column filled in.
template <class Config>
void expand(const Config& config, const std::string& where, std::vector<Config>& expanded) {
  const std::vector<std::string> names =
      expand_range(config.name.empty() ? config.column : config.name);
  const std::vector<std::string> columns =
      expand_range(config.column.empty() ? config.name : config.column);
  if (names.size() != columns.size()) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(where, ": name '", config.name, "' stands for ", names.size(),
                       " inputs but column '", config.column, "' for ", columns.size(),
                       remedy_for(config)));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    expanded.push_back(config);
    expanded.back().name = names[i];
    expanded.back().column = columns[i];
  }
}

/// A feature of several columns is one feature, and a cross has no column.
void expand_feature(const FeatureConfig& config, std::vector<FeatureConfig>& expanded) {
  const std::string where = "data.schema.features";
  if (config.is_cross()) return expanded.push_back(config);
  if (config.columns.empty()) return expand(config, where, expanded);
  FeatureConfig& feature = expanded.emplace_back(config);
  feature.columns.clear();
  for (const std::string& column : config.columns) {
    const std::vector<std::string> range = expand_range(column);
    feature.columns.insert(feature.columns.end(), range.begin(), range.end());
  }
}

/// The most ids of a row, if it is bounded; else 0.
std::int64_t max_length_of(const FeatureConfig& feature) {
  if (feature.max_length > 0 || !feature.separator.empty()) return feature.max_length;
  return std::ssize(feature.columns);
}

std::string one_character(const std::string& text) { return text == "\\t" ? "\t" : text; }

SchemaConfig synthetic_schema(const SyntheticConfig& config) {
  SchemaConfig schema = criteo_schema();
  schema.columns = {"label"};
  schema.numeric.front().name = concat("I1..I", config.num_numeric);
  schema.features.front().name = concat("C1..C", config.num_features());
  if (config.num_numeric == 0) schema.numeric.clear();
  for (std::int64_t i = 1; i <= config.num_numeric; ++i) schema.columns.push_back(concat("I", i));
  for (std::int64_t i = 1; i <= config.num_features(); ++i) {
    schema.columns.push_back(concat("C", i));
  }
  return schema;
}

/// Columns of numbers in the order in which they were first asked for.
class Places {
 public:
  explicit Places(std::vector<Schema::RawNumber>& numbers) : numbers_(numbers) {}

  /// Adds the column at the end if it is missing.
  std::int64_t of(const std::string& column, bool is_time) {
    auto& places = is_time ? times_ : places_;
    const auto [place, is_new] = places.try_emplace(column, std::ssize(numbers_));
    if (is_new) numbers_.push_back({column, is_time});
    return place->second;
  }

 private:
  std::vector<Schema::RawNumber>& numbers_;
  std::unordered_map<std::string, std::int64_t> places_, times_;
};

/// The place of a feature among those before the cross.
std::int64_t operand_of(const FeatureConfig& cross,
                        const std::string& name,
                        const std::vector<SchemaFeature>& features) {
  const auto found = std::ranges::find(features, name, &SchemaFeature::name);
  if (found != features.end()) return found - features.begin();
  std::vector<std::string> names;
  for (const SchemaFeature& feature : features) names.push_back(feature.name);
  const std::string guess = nearest(name, names);
  throw Error(ErrorCode::kInvalidConfig,
              concat("data.schema.features: cross '", cross.name, "' needs the feature '", name,
                     "', and there is none before it",
                     guess.empty() ? "" : concat("; did you mean '", guess, "'?")));
}

void check_unique(std::vector<std::string> names, const std::string& what) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("data.schema: two ", what, " are named '", printable(*twice), "'"));
  }
}

/// The labels in their order: those of `labels`, or the one of `label`.
std::vector<NamedLabelConfig> labels_of(const SchemaConfig& text) {
  std::vector<NamedLabelConfig> labels = text.labels;
  if (labels.empty()) labels.push_back({.source = text.label});
  std::vector<std::string> names;
  for (NamedLabelConfig& label : labels) {
    if (label.name.empty()) label.name = label.source.column;
    names.push_back(label.name);
  }
  check_unique(std::move(names), "labels");
  return labels;
}

/// Rows are grouped by a feature as the model sees it, or by another column's text.
void add_groups(const std::string& name, Schema& schema) {
  schema.grouped = true;
  const auto feature = std::ranges::find(schema.features, name, &SchemaFeature::name);
  if (feature != schema.features.end()) {
    schema.group_feature = feature - schema.features.begin();
    return;
  }
  FeatureConfig column;
  column.name = column.column = name;
  schema.id_columns.push_back({.feature = Schema::kGroups, .config = column});
}

}  // namespace

std::vector<std::string> columns_of(const FeatureConfig& feature) {
  return feature.columns.empty() ? std::vector<std::string>{feature.column} : feature.columns;
}

bool Schema::needs_fit() const {
  const auto has_zscore = [](const NumericInput& input) {
    return takes_zscore(input.config.transform);
  };
  const auto has_quantiles = [](const Bucketed& feature) {
    return feature.config.buckets.quantiles > 0;
  };
  return std::any_of(numeric_inputs.begin(), numeric_inputs.end(), has_zscore) ||
         std::any_of(bucketed.begin(), bucketed.end(), has_quantiles);
}

void Schema::leave_out_labels() {
  labelled = false;
  const auto is_weight = [&](const auto& input) { return input.raw == weight; };
  const bool is_input =
      std::ranges::any_of(numeric_inputs, is_weight) || std::ranges::any_of(bucketed, is_weight);
  if (weight >= 0 && !is_input) raw_numeric.pop_back();  // it is the last
  weight = -1;
}

Schema resolve_schema(const DataConfig& config) {
  Schema schema;
  const bool is_criteo =
      config.resolved_format() == DataFormat::kCriteo || config.schema_name == "criteo";
  schema.text = config.is_synthetic() ? synthetic_schema(config.synthetic)
                : is_criteo           ? criteo_schema()
                                      : config.schema;
  SATRAP_CHECK(config.is_synthetic() || is_criteo || config.schema_name.empty(), "schema file '",
               config.schema_name, "' is not read yet");
  schema.text.delimiter = one_character(schema.text.delimiter);
  schema.labels = labels_of(schema.text);

  std::vector<NumericConfig> numeric;
  for (const NumericConfig& input : schema.text.numeric) {
    expand(input, "data.schema.numeric", numeric);
  }
  std::vector<FeatureConfig> features;
  for (const FeatureConfig& feature : schema.text.features) {
    expand_feature(feature, features);
  }
  schema.text.numeric = numeric;
  schema.text.features = features;

  Places raw(schema.raw_numeric);
  for (const NumericConfig& input : numeric) {
    Schema::NumericInput& number = schema.numeric_inputs.emplace_back();
    number = {.raw = raw.of(input.column, input.is_age()),
              .output = schema.num_numeric_outputs(),
              .config = input};
    if (input.is_age()) number.since = raw.of(input.since, /*is_time=*/true);
    schema.numeric_names.push_back(input.name);
    if (input.missing_indicator) schema.numeric_names.push_back(input.name + ".missing");
  }
  for (FeatureConfig& feature : features) {
    const std::int64_t index = schema.num_features();
    if (feature.is_cross()) {
      schema.crosses.push_back(
          {.first = operand_of(feature, feature.cross.front(), schema.features),
           .second = operand_of(feature, feature.cross.back(), schema.features),
           .feature = index,
           .config = feature});
    }
    schema.features.push_back({feature.name, max_length_of(feature)});
    if (feature.is_cross()) continue;
    if (feature.buckets.any()) {
      schema.bucketed.push_back(
          {.raw = raw.of(feature.column, /*is_time=*/false), .feature = index, .config = feature});
      continue;
    }
    if (feature.is_date_part()) {
      schema.dated.push_back(
          {.raw = raw.of(feature.column, /*is_time=*/true), .feature = index, .config = feature});
      continue;
    }
    feature.separator = one_character(feature.separator);
    schema.weighted = schema.weighted || !feature.weight_separator.empty();
    schema.id_columns.push_back({.feature = index, .config = feature});
  }

  schema.share_of_negatives = config.train.negatives * config.train.negatives_in_files;
  if (!schema.text.weight.empty()) schema.weight = raw.of(schema.text.weight, /*is_time=*/false);
  if (!config.group_by.empty()) add_groups(config.group_by, schema);

  check_unique(schema.numeric_names, "numeric inputs");
  std::vector<std::string> names;
  for (const SchemaFeature& feature : schema.features) names.push_back(feature.name);
  check_unique(std::move(names), "features");
  return schema;
}

}  // namespace satrap::data
