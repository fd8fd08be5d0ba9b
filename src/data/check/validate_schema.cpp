#include "src/data/check/validate_schema.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "satrap/data/time_zone.h"
#include "src/data/rows/canonical_text.h"

namespace satrap::data {
namespace {

bool is_character(const std::string& text) {
  return (text.size() == 1 && text != "\n" && text != "\r") || text == "\\t";
}

template <class Input>
std::string column_of(const Input& input) {
  return input.column.empty() ? input.name : input.column;
}

void check_numeric(const ConfigChecker& check, const NumericConfig& input, const std::string& key) {
  check.require(!input.name.empty() || !input.column.empty(), key, "has neither name nor column");
  check.require(input.clip.empty() || (input.clip.size() == 2 && input.clip[0] <= input.clip[1]),
                key + ".clip", "must be two numbers, [low, high]");
  check.require(std::isfinite(input.fill), key + ".fill", "must be finite");
  check.require(input.is_age() || input.unit == NumericConfig().unit, key + ".unit",
                "has no effect without since");
  check.require(!input.is_age() || input.since != column_of(input), key + ".since",
                "is the column itself: the age would always be 0");
}

/// Whether nothing says how an id is written and how ids are divided.
bool is_plain(const FeatureConfig& feature) {
  return feature.type == IdType::kString && feature.separator.empty() &&
         feature.weight_separator.empty() && feature.columns.empty() && feature.max_length == 0;
}

void check_date_part(const ConfigChecker& check,
                     const FeatureConfig& feature,
                     const std::string& key) {
  check.require(feature.is_date_part() || feature.zone == FeatureConfig().zone, key + ".zone",
                "has no effect without part");
  if (!feature.is_date_part()) return;
  check.require(is_plain(feature) && !feature.buckets.any(), key + ".part",
                "a feature made from a time has no type, no separators, no buckets and one column");
  try {
    TimeZone zone(feature.zone);
  } catch (const Error& error) {
    check.require(false, key + ".zone", error.what());
  }
}

void check_cross(const ConfigChecker& check, const FeatureConfig& feature, const std::string& key) {
  if (!feature.is_cross()) return;
  check.require(feature.cross.size() == 2 && feature.cross[0] != feature.cross[1], key + ".cross",
                "must be the names of two features");
  check.require(!feature.name.empty(), key + ".cross", "a cross needs a name");
  check.require(is_plain(feature) && feature.column.empty() && !feature.buckets.any() &&
                    !feature.is_date_part(),
                key + ".cross",
                "a feature made from two others has no column, type, separators, buckets and part "
                "of its own");
}

/// `has_lists`: the files divide the ids of a bag themselves.
void check_feature(const ConfigChecker& check,
                   const FeatureConfig& feature,
                   bool has_lists,
                   const std::string& key) {
  check.require(!feature.name.empty() || !feature.column.empty(), key,
                "has neither name nor column");
  check.require(feature.separator.empty() || is_character(feature.separator), key + ".separator",
                concat("must be one character, got '", feature.separator, "'"));
  check.require(feature.weight_separator.empty() || (is_character(feature.weight_separator) &&
                                                     feature.weight_separator != feature.separator),
                key + ".weight_separator", "must be one character, different from separator");
  check.require(feature.keep == KeptIds::kFirst || feature.max_length > 0, key + ".keep",
                "has no effect without max_length");
  check.require(feature.max_length == 0 || has_lists || !feature.separator.empty() ||
                    !feature.columns.empty(),
                key + ".max_length", "has no effect without a separator or several columns");
  check.require(feature.columns.empty() || feature.column.empty(), key + ".columns",
                concat("replaces column, which is '", feature.column, "': leave one of them out"));
  check.require(feature.columns.empty() || !feature.name.empty(), key + ".columns",
                "a feature of several columns needs a name");
  check_date_part(check, feature, key);
  check_cross(check, feature, key);
  const BucketConfig& buckets = feature.buckets;
  if (!buckets.any()) return;
  check.require(buckets.quantiles == 0 || buckets.boundaries.empty(), key + ".buckets",
                "takes either quantiles or boundaries");
  check.require(buckets.quantiles != 1, key + ".buckets.quantiles", "must be at least 2");
  check.require(std::is_sorted(buckets.boundaries.begin(), buckets.boundaries.end(),
                               [](double a, double b) { return a <= b; }),
                key + ".buckets.boundaries", "must be ascending");
  check.require(feature.type == IdType::kString && feature.separator.empty() &&
                    feature.weight_separator.empty() && feature.columns.empty(),
                key + ".buckets",
                "a feature made from a number has no type, no separators and one column");
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }

/// The texts of classes are headers in the output of `predict`, and what a field is compared with.
void check_values(const ConfigChecker& check,
                  const LabelConfig& label,
                  const SchemaConfig& schema,
                  const std::string& key) {
  if (label.values.empty()) return;
  check.require(std::ssize(label.values) == label.classes, key,
                concat("has ", label.values.size(), " texts, and `classes` is ", label.classes,
                       "; write classes: ", label.values.size()));
  CanonicalText canonical(schema.decimal == Decimal::kComma ? ',' : '.');
  std::vector<std::string> seen;
  for (const std::string& text : label.values) {
    check.require(!text.empty(), key, "has an empty text, which is a missing label");
    check.require(std::ranges::none_of(text, is_control), key,
                  concat("has control characters in '", printable(text), "'"));
    seen.emplace_back(schema.value_rule == 1 ? text : canonical.of_text(text));
  }
  std::ranges::sort(seen);
  const auto twice = std::ranges::adjacent_find(seen);
  check.require(twice == seen.end(), key,
                concat("two classes have the text '", twice == seen.end() ? "" : *twice, "'"));
}

/// A label that is not 0 or 1 takes nothing that says what is 1.
void check_other_label(const ConfigChecker& check,
                       const LabelConfig& label,
                       const SchemaConfig& schema,
                       const std::string& key) {
  check.require(label.classes != 1, key + ".classes",
                "must be at least 2: with one class there is nothing to tell apart");
  check.require(label.values.empty() || label.has_classes(), key + ".values",
                concat("has no effect without classes; write classes: ", label.values.size()));
  check.require(!label.has_classes() || !label.is_number(), key + ".classes",
                "does not go with type: number; leave one of them out");
  check_values(check, label, schema, key + ".values");
  if (label.is_binary()) return;
  const std::string what = label.is_number() ? "type: number" : "classes";
  const auto refuse = [&](bool is_unused, const char* field, const char* remedy) {
    check.require(is_unused, key + field,
                  concat("is for labels of 0 and 1, and does not go with ", what, "; ", remedy));
  };
  refuse(label.positive.empty(), ".positive", "leave one of them out");
  refuse(label.threshold.empty(), ".threshold", "leave one of them out");
  refuse(label.positive_weight == 1.0, ".positive_weight",
         "data.schema.weight names a column of weights");
}

void check_label(const ConfigChecker& check,
                 const LabelConfig& label,
                 const SchemaConfig& schema,
                 const std::string& key) {
  check_other_label(check, label, schema, key);
  check.require(label.positive.empty() || label.threshold.empty(), key,
                "takes either positive or threshold");
  check.require(label.negative.empty() || !label.positive.empty(), key + ".negative",
                "has no effect without positive");
  check.require(label.threshold.size() <= 1, key + ".threshold", "must be one number");
}

/// The name is a column header in the output of `predict`, and a key of metrics and event files.
void check_label_name(const ConfigChecker& check,
                      const NamedLabelConfig& label,
                      const std::string& key) {
  const bool own = !label.name.empty();
  const std::string& name = own ? label.name : label.source.column;
  const auto bad = std::ranges::find_if(name, is_control);
  const std::string place = key + (own ? ".name" : ".column");
  check.require(!name.empty(), place, "a label without a name needs a column, got none");
  if (bad == name.end()) return;
  check.require(false, place,
                concat("a label's name has no control characters, got the byte ",
                       static_cast<int>(static_cast<unsigned char>(*bad)), " at place ",
                       bad - name.begin(), own ? "" : "; give the label its own `name`"));
}

void check_labels(const ConfigChecker& check, const SchemaConfig& schema, const std::string& key) {
  // Only a change can be detected: a resolved config writes `label` too, and must load again.
  check.require(schema.labels.empty() || schema.label == LabelConfig(), key + ".labels",
                concat("replaces label, which reads column '", schema.label.column,
                       "': leave one of them out"));
  check_label(check, schema.label, schema, key + ".label");
  for (std::size_t i = 0; i < schema.labels.size(); ++i) {
    const std::string place = concat(key, ".labels.", i);
    check_label(check, schema.labels[i].source, schema, place);
    check.require(schema.labels.size() == 1 || !schema.labels[i].source.has_classes(),
                  place + ".classes",
                  concat("a label of classes must be the only one, and there are ",
                         schema.labels.size(), "; train a job for it alone"));
    check_label_name(check, schema.labels[i], concat(key, ".labels.", i));
  }
}

void check_weight(const ConfigChecker& check, const SchemaConfig& schema, const std::string& key) {
  const bool is_label =
      !schema.weight.empty() &&
      (schema.labels.empty() ? schema.weight == schema.label.column
                             : std::ranges::any_of(schema.labels, [&](const auto& label) {
                                 return label.source.column == schema.weight;
                               }));
  check.require(!is_label, key + ".weight",
                concat("column '", schema.weight, "' is the label's; `positive_weight` of a label ",
                       "weighs its positives"));
}

/// A model that reads the label has nothing to learn.
void check_inputs_are_no_labels(const ConfigChecker& check, const SchemaConfig& schema) {
  std::vector<std::string> labels;
  for (const NamedLabelConfig& label : schema.labels) labels.push_back(label.source.column);
  if (labels.empty()) labels.push_back(schema.label.column);
  const auto refuse_label = [&](const std::string& column, const std::string& key) {
    check.require(std::ranges::count(labels, column) == 0, key,
                  concat("column '", column, "' is the label's; an input must not read it"));
  };
  for (std::size_t i = 0; i < schema.numeric.size(); ++i) {
    refuse_label(column_of(schema.numeric[i]), concat("data.schema.numeric.", i));
    refuse_label(schema.numeric[i].since, concat("data.schema.numeric.", i, ".since"));
  }
  for (std::size_t i = 0; i < schema.features.size(); ++i) {
    const FeatureConfig& feature = schema.features[i];
    std::vector<std::string> columns = feature.columns;
    if (columns.empty() && !feature.is_cross()) columns.push_back(column_of(feature));
    for (const std::string& column : columns) {
      refuse_label(column, concat("data.schema.features.", i));
    }
  }
}

}  // namespace

void check_schema(const ConfigChecker& check, const SchemaConfig& schema, bool has_lists) {
  const std::string key = "data.schema";
  check.require(is_character(schema.delimiter), key + ".delimiter",
                concat("must be one character, got '", schema.delimiter, "'"));
  check.require(schema.quote.empty() || (is_character(schema.quote) && schema.quote != "\\t" &&
                                         schema.quote != schema.delimiter),
                key + ".quote", "must be one character, different from delimiter, or empty");
  check.require(!schema.header || schema.columns.empty(), key + ".columns",
                "is for files without a header; add header: false");
  check_labels(check, schema, key);
  check_weight(check, schema, key);
  check_inputs_are_no_labels(check, schema);
  check.require(!schema.numeric.empty() || !schema.features.empty(), key,
                "has neither numeric nor features: nothing to learn from");
  for (std::size_t i = 0; i < schema.numeric.size(); ++i) {
    check_numeric(check, schema.numeric[i], concat(key, ".numeric.", i));
  }
  for (std::size_t i = 0; i < schema.features.size(); ++i) {
    check_feature(check, schema.features[i], has_lists, concat(key, ".features.", i));
  }
}

void check_named_schema(const ConfigChecker& check, const SchemaConfig& schema, FileFormat format) {
  const SchemaConfig plain;
  const auto refuse = [&](bool is_plain, const std::string& key) {
    check.require(is_plain, "data.schema." + key,
                  concat("has no effect on ", name_of(format),
                         ", which names its columns and divides its values itself"));
  };
  refuse(schema.delimiter == plain.delimiter, "delimiter");
  refuse(schema.quote == plain.quote, "quote");
  refuse(schema.decimal == plain.decimal, "decimal");
  refuse(schema.header == plain.header, "header");
  refuse(schema.columns == plain.columns, "columns");
}

}  // namespace satrap::data
