#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <arrow/io/interfaces.h>

namespace parquet {
class FileMetaData;
class ParquetFileReader;
class RowGroupReader;
}  // namespace parquet

namespace satrap::data {

/// A file that several readers of row groups share.
struct SharedParquet {
  std::shared_ptr<arrow::io::RandomAccessFile> file;
  std::int64_t piece_bytes;  // worth reading at a time
  std::shared_ptr<parquet::FileMetaData> metadata;
};

/// Some columns of a row group for one reader, with at most about `max_bytes` of the file in memory
/// at a time, or a piece of each column if that is less. Each column has a buffer of an equal
/// share; but of a file in a store, where the columns fit into these together, threads of Arrow's
/// read them at once, neighbours by one request.
class OpenGroup {
 public:
  OpenGroup(const SharedParquet& source,
            int group,
            std::span<const std::size_t> columns,
            std::int64_t max_bytes);
  /// Waits for what is being read.
  ~OpenGroup();
  OpenGroup(const OpenGroup&) = delete;
  OpenGroup& operator=(const OpenGroup&) = delete;

  parquet::RowGroupReader& reader() { return *group_; }

 private:
  const std::vector<int> groups_;
  const std::vector<int> columns_;
  bool is_read_at_once_ = false;
  std::unique_ptr<parquet::ParquetFileReader> file_;
  std::shared_ptr<parquet::RowGroupReader> group_;
};

}  // namespace satrap::data
