#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "satrap/data/schema.h"
#include "src/data/columnar/parquet.h"
#include "src/data/text/column_map.h"

namespace satrap::data {

/// An open file with what the schema reads of it. Immutable.
struct MappedParquet {
  /// Takes and throws as open_parquet, and throws Error(kInvalidConfig) if a column is missing or
  /// of a type that cannot be what the schema takes it for.
  MappedParquet(const std::string& file_path,
                const Schema& schema,
                std::function<bool()> is_cancelled = {});

  /// Takes a file that is open already.
  MappedParquet(const std::string& file_path,
                std::unique_ptr<ParquetFile> opened,
                const Schema& schema);

  const ParquetFile::Column& column(std::size_t i) const { return file->columns()[columns[i]]; }
  const ColumnMap::Column& use(std::size_t i) const { return map.columns()[columns[i]]; }

  std::string path;
  std::unique_ptr<ParquetFile> file;
  ColumnMap map;
  std::vector<std::size_t> columns;  // places of those that are read, ascending
  std::int64_t num_rows = 0;
};

/// Rows of these files, by their descriptions alone.
std::int64_t count_parquet_rows(const std::vector<std::string>& paths);

}  // namespace satrap::data
