#include "satrap/data/columns.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/text.h"
#include "satrap/data/remote_folder.h"
#include "src/data/columnar/parquet_files.h"
#include "src/data/files/file_list.h"
#include "src/data/rows/row_selection.h"
#include "src/data/terms/file_format.h"
#include "src/data/text/column_map.h"
#include "src/data/text/column_use.h"
#include "src/data/text/line_cutter.h"
#include "src/data/text/named_columns.h"
#include "src/data/topic/topic_source.h"

namespace satrap::data {
namespace {

/// None, of a text file without a row among its first `max_rows` lines or so; 0: of all.
std::optional<ColumnMap> columns_of_file(const Schema& schema,
                                         const std::string& path,
                                         FileFormat format,
                                         std::int64_t max_rows = 0) {
  if (is_columnar(format)) return MappedParquet(path, schema).map;
  if (format != FileFormat::kDelimited) return ColumnMap(schema, NamedColumns(schema).names, path);
  LineCutter cutter(schema, {path}, {.max_rows = max_rows}, {});
  TextBlock block;
  while (cutter.next(block)) {
    if (block.layout) return *block.layout;
  }
  return std::nullopt;
}

/// One line each.
std::string describe_uses(const Schema& schema, const ColumnMap& map) {
  std::size_t width = 0;
  for (const ColumnMap::Column& column : map.columns()) {
    width = std::max(width, column.name.size());
  }
  std::string text;
  for (const ColumnMap::Column& column : map.columns()) {
    text += fmt::format("  {:<{}}  {}\n", column.name, width, use_of(schema, column));
  }
  return text;
}

/// Whether there are files of this role that belong to it alone.
bool has_files(const Dataset& data, Role role) {
  if (data.is_generated()) return false;
  if (role == Role::kTrain) return !data.is_topic();
  return data.config().has_eval() && !data.config().eval.is_part();
}

Schema with_slices(Schema schema, const std::vector<std::string>& slices) {
  schema.kept = slices;
  schema.kept_by = "train.slices";
  return schema;
}

/// Without a look at its messages: the schema names their columns.
std::string describe_topic(const DataConfig& config, const Schema& schema) {
  const std::string& url = config.train.path.front();
  const ColumnMap map = format_of_topic(config) == FileFormat::kDelimited
                            ? ColumnMap(schema, "", url)
                            : ColumnMap(schema, NamedColumns(schema).names, url);
  return fmt::format("  messages of {}\n", url) + describe_uses(schema, map);
}

}  // namespace

std::string describe_columns(const Dataset& data,
                             Role role,
                             const std::vector<std::string>& slices) {
  const DataConfig& config = data.config();
  if (data.is_generated()) return "  rows are generated\n";
  if (role != Role::kTrain && config.eval.is_part()) {
    check_columns(data, role, slices);
    return "  a part of the rows of the training data (data.eval.fraction)\n";
  }
  const Schema read = with_slices(schema_of_role(data.schema(), config, role), slices);
  if (role == Role::kTrain && data.is_topic()) return describe_topic(config, read);
  const FileList& files = data.files(role);
  if (files.files.front().path == "-") return "  rows come from standard input\n";
  std::optional<ColumnMap> first;
  for (const std::string& path : files.paths()) {
    const auto columns = columns_of_file(read, path, data.format(role));
    if (!first) first = columns;
  }
  std::string text =
      fmt::format("  {} file{}{}: {}{}\n", files.files.size(), files.files.size() == 1 ? "" : "s",
                  files.total_bytes > 0 ? ", " + format_bytes(files.total_bytes) : "",
                  shown_path(files.files.front().path), files.files.size() == 1 ? "" : " and more");
  return first ? text + describe_uses(read, *first) : text;
}

void check_columns(const Dataset& data, Role role, const std::vector<std::string>& slices) {
  constexpr std::int64_t kMaxRows = 1000;  // a file may begin with any number of blank lines
  if (!has_files(data, role)) return;
  const FileList& files = data.files(role);
  const std::string& first = files.files.front().path;
  if (!files.rereadable || is_url(first)) return;
  const Schema read = with_slices(schema_of_role(data.schema(), data.config(), role), slices);
  columns_of_file(read, first, data.format(role), kMaxRows);
}

}  // namespace satrap::data
