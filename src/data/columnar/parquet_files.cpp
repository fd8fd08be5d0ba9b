#include "src/data/columnar/parquet_files.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "src/data/text/column_use.h"

namespace satrap::data {
namespace {

std::vector<std::string> names_of(const ParquetFile& file) {
  std::vector<std::string> names;
  for (const ParquetFile::Column& column : file.columns()) names.push_back(column.name);
  return names;
}

std::int64_t rows_of(const ParquetFile& file) {
  const std::vector<std::int64_t>& rows = file.rows_of_groups();
  return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

/// Why a column of this type cannot be used so, and what to do; "": it can.
std::string objection(const ParquetFile::Column& column,
                      ColumnMap::Kind use,
                      bool is_hex,
                      std::int64_t value_rule) {
  const bool reads_times = use == ColumnMap::Kind::kText || use == ColumnMap::Kind::kTime;
  if (ParquetFile::is_of_time(column.kind) && reads_times && !column.is_list) return "";
  if (column.kind == ParquetFile::Kind::kOther || ParquetFile::is_of_time(column.kind)) {
    return "integers, booleans, floating-point numbers, texts and lists of them are read (and for "
           "data.train.where, `part` and `since` dates and timestamps); convert it to one of these";
  }
  if (use == ColumnMap::Kind::kTime && column.kind == ParquetFile::Kind::kTruth) {
    return "times are timestamps, dates, numbers or texts";
  }
  const bool is_of_ids = use == ColumnMap::Kind::kInt;
  if (column.is_list && !is_of_ids) return "a list is read as ids alone";
  if (is_of_ids && value_rule == 1 &&
      (column.kind == ParquetFile::Kind::kFloat || column.kind == ParquetFile::Kind::kDouble)) {
    return "ids are integers or texts; convert it, or make it a number, or cut it into ranges with "
           "`buckets`";
  }
  if (is_of_ids && is_hex && column.kind != ParquetFile::Kind::kText && !column.is_null) {
    return "hex digits are texts; write `type: int`";
  }
  return "";
}

void require_use(const MappedParquet& source,
                 const ParquetFile::Column& column,
                 const std::string& user,
                 const std::string& objection) {
  if (objection.empty()) return;
  throw Error(ErrorCode::kInvalidConfig,
              concat(source.path, ": column '", printable(column.name), "' (", column.type,
                     ") cannot be used as ", user, ": ", objection));
}

void check_types(const MappedParquet& source, const Schema& schema) {
  for (std::size_t i = 0; i < source.columns.size(); ++i) {
    const ParquetFile::Column& column = source.column(i);
    for (const ColumnMap::Consumer& consumer : source.use(i).consumers) {
      const bool is_of_ids = consumer.kind == ColumnMap::Kind::kInt;
      const auto target = static_cast<std::size_t>(consumer.target);
      const bool is_hex = is_of_ids && schema.id_columns[target].config.type == IdType::kHex;
      require_use(source, column, use_of(schema, consumer),
                  objection(column, consumer.kind, is_hex, schema.text.value_rule));
    }
  }
  for (std::size_t i = 0; i < schema.selecting.size(); ++i) {
    const ParquetFile::Column& column = source.file->columns()[source.map.selecting()[i]];
    const Schema::SelectingColumn& selecting = schema.selecting[i];
    require_use(source, column, selecting.reader,
                objection(column, ColumnMap::Kind::kText, false, kValueRule));
    if (ParquetFile::is_of_time(column.kind) && !selecting.no_time.empty()) {
      throw Error(ErrorCode::kInvalidConfig,
                  concat(selecting.reader, ": column '", printable(column.name), "' (", column.type,
                         ") of ", source.path, " has dates or times, and '", selecting.no_time,
                         "' is none: write 2026-11-27 or 2026-11-27T21:05:09.125, in UTC, or the "
                         "beginning of one"));
    }
    if (!selecting.divides_rows) continue;
    require_use(source, column, selecting.reader,
                objection(column, ColumnMap::Kind::kInt, false, schema.text.value_rule));
  }
}

}  // namespace

MappedParquet::MappedParquet(const std::string& file_path,
                             const Schema& schema,
                             std::function<bool()> is_cancelled)
    : MappedParquet(file_path, open_parquet(file_path, std::move(is_cancelled)), schema) {}

MappedParquet::MappedParquet(const std::string& file_path,
                             std::unique_ptr<ParquetFile> opened,
                             const Schema& schema)
    : path(file_path),
      file(std::move(opened)),
      map(schema, names_of(*file), file_path),
      num_rows(rows_of(*file)) {
  for (std::size_t i = 0; i < map.columns().size(); ++i) {
    if (!map.columns()[i].consumers.empty() ||
        std::ranges::find(map.selecting(), i) != map.selecting().end()) {
      columns.push_back(i);
    }
  }
  check_types(*this, schema);
}

std::int64_t count_parquet_rows(const std::vector<std::string>& paths) {
  std::int64_t rows = 0;
  for (const std::string& path : paths) rows += rows_of(*open_parquet(path));
  return rows;
}

}  // namespace satrap::data
