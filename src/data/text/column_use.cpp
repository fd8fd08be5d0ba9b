#include "src/data/text/column_use.h"

#include <cstdint>

#include "satrap/core/error.h"

namespace satrap::data {
namespace {

std::string use_of_number(const Schema& schema, std::int64_t raw) {
  std::string text = raw == schema.weight ? "weight of the row" : "";
  for (const Schema::NumericInput& input : schema.numeric_inputs) {
    if (input.raw != raw) continue;
    text += concat(text.empty() ? "" : "; ", "number");
    if (input.config.transform == Transform::kNone) continue;
    text += concat(", ", word_of(input.config.transform, kTransforms));
  }
  for (const Schema::Bucketed& feature : schema.bucketed) {
    if (feature.raw != raw) continue;
    text +=
        concat(text.empty() ? "" : "; ", "feature '", feature.config.name, "', cut into ranges");
  }
  return text;
}

std::string use_of_time(const Schema& schema, std::int64_t raw) {
  std::string text = "time";
  for (const Schema::Dated& feature : schema.dated) {
    if (feature.raw != raw) continue;
    text += concat("; feature '", feature.config.name, "', ",
                   word_of(feature.config.part, kDateParts), " in ", feature.config.zone);
  }
  for (const Schema::NumericInput& input : schema.numeric_inputs) {
    if (!input.config.is_age() || (input.raw != raw && input.since != raw)) continue;
    text += concat("; ", input.raw == raw ? "end" : "begin", " of '", input.config.name, "'");
  }
  return text;
}

std::string use_of_ids(const Schema::IdColumn& column) {
  if (column.feature == Schema::kGroups) return "groups of the evaluation (data.group_by)";
  const FeatureConfig& feature = column.config;
  std::string text = concat("feature '", feature.name, "', ", word_of(feature.type, kIdTypes));
  if (!feature.columns.empty()) text += ", one of several columns";
  if (!feature.separator.empty()) text += concat(", ids separated by '", feature.separator, "'");
  return text;
}

}  // namespace

std::string use_of(const Schema& schema, const ColumnMap::Consumer& consumer) {
  const auto target = static_cast<std::size_t>(consumer.target);
  switch (consumer.kind) {
    case ColumnMap::Kind::kLabel:
      return schema.labels.size() == 1 ? "label"
                                       : concat("label '", schema.labels[target].name, "'");
    case ColumnMap::Kind::kNumber:
      return use_of_number(schema, consumer.target);
    case ColumnMap::Kind::kTime:
      return use_of_time(schema, consumer.target);
    case ColumnMap::Kind::kText:
      return concat("kept (", schema.kept_by, ")");
    default:
      return use_of_ids(schema.id_columns[target]);
  }
}

std::string use_of(const Schema& schema, const ColumnMap::Column& column) {
  std::string text;
  for (const ColumnMap::Consumer& consumer : column.consumers) {
    text += (text.empty() ? "" : "; ") + use_of(schema, consumer);
  }
  for (const Schema::SelectingColumn& selecting : schema.selecting) {
    if (selecting.column != column.name) continue;
    text += concat(text.empty() ? "" : "; ", "selects rows (", selecting.reader, ")");
  }
  return text.empty() ? "not read" : text;
}

}  // namespace satrap::data
