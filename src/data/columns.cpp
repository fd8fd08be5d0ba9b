#include "satrap/data/columns.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/text.h"
#include "src/data/column_map.h"
#include "src/data/file_list.h"
#include "src/data/line_cutter.h"

namespace satrap::data {
namespace {

std::string use_of_number(const Schema& schema, std::int64_t raw) {
  std::string text;
  for (const Schema::NumericInput& input : schema.numeric_inputs) {
    if (input.raw != raw) continue;
    text += concat(text.empty() ? "" : "; ", "number");
    if (input.config.transform != "none") text += ", " + input.config.transform;
  }
  for (const Schema::Bucketed& feature : schema.bucketed) {
    if (feature.raw != raw) continue;
    text +=
        concat(text.empty() ? "" : "; ", "feature '", feature.config.name, "', cut into ranges");
  }
  return text;
}

std::string use_of_ids(const Schema::IdColumn& column) {
  if (column.feature == Schema::kGroups) return "groups of the evaluation (data.group_by)";
  const FeatureConfig& feature = column.config;
  std::string text = concat("feature '", feature.name, "', ", feature.type);
  if (!feature.columns.empty()) text += ", one of several columns";
  if (!feature.separator.empty()) text += concat(", ids separated by '", feature.separator, "'");
  return text;
}

std::string use_of(const Schema& schema, const ColumnMap::Consumer& consumer) {
  const auto target = static_cast<std::size_t>(consumer.target);
  switch (consumer.kind) {
    case ColumnMap::Kind::kLabel:
      return schema.labels.size() == 1 ? "label"
                                       : concat("label '", schema.labels[target].name, "'");
    case ColumnMap::Kind::kNumber:
      return use_of_number(schema, consumer.target);
    case ColumnMap::Kind::kText:
      return "kept";
    default:
      return use_of_ids(schema.id_columns[target]);
  }
}

std::string use_of(const Schema& schema, const ColumnMap::Column& column) {
  std::string text;
  for (const ColumnMap::Consumer& consumer : column.consumers) {
    text += (text.empty() ? "" : "; ") + use_of(schema, consumer);
  }
  return text.empty() ? "not read" : text;
}

/// nullptr: the file has no row.
std::shared_ptr<const ColumnMap> columns_of_file(const Schema& schema, const std::string& path) {
  LineCutter cutter(schema, {path}, {}, {});
  TextBlock block;
  while (cutter.next(block)) {
    if (block.layout) return block.layout;
  }
  return nullptr;
}

}  // namespace

std::string describe_columns(const DataConfig& config, const Schema& schema, Role role) {
  if (config.resolved_format() == "synthetic") return "  rows are generated\n";
  const FileList files = list_files(role == Role::kTrain ? config.train.path : config.eval.path);
  if (files.files.front().path == "-") return "  rows come from standard input\n";
  std::shared_ptr<const ColumnMap> first;
  for (const std::string& path : files.paths()) {
    const auto columns = columns_of_file(schema, path);
    if (!first) first = columns;
  }
  std::string text =
      fmt::format("  {} file{}{}: {}{}\n", files.files.size(), files.files.size() == 1 ? "" : "s",
                  files.total_bytes > 0 ? ", " + format_bytes(files.total_bytes) : "",
                  shown_path(files.files.front().path), files.files.size() == 1 ? "" : " and more");
  if (!first) return text;
  std::size_t width = 0;
  for (const ColumnMap::Column& column : first->columns()) {
    width = std::max(width, column.name.size());
  }
  for (const ColumnMap::Column& column : first->columns()) {
    text += fmt::format("  {:<{}}  {}\n", column.name, width, use_of(schema, column));
  }
  return text;
}

}  // namespace satrap::data
