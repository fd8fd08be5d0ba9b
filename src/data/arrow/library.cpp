#include <memory>
#include <string>
#include <utility>

#include <arrow/io/file.h>
#include <arrow/memory_pool.h>
#include <arrow/util/config.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include "src/data/arrow/column_kind.h"
#include "src/data/arrow/group_reader.h"
#include "src/data/arrow/ipc_file.h"
#include "src/data/parquet.h"

namespace satrap::data {
namespace {

/// Bytes of a column that are read from the disk at a time: a row group need not fit into memory.
constexpr std::int64_t kReadBytes = std::int64_t{256} << 10;

class ArrowFile : public ParquetFile {
 public:
  explicit ArrowFile(const std::string& path) {
    parquet::ReaderProperties properties(arrow::default_memory_pool());
    properties.enable_buffered_stream();
    properties.set_buffer_size(kReadBytes);
    PARQUET_ASSIGN_OR_THROW(auto file, arrow::io::ReadableFile::Open(path));
    reader_ = parquet::ParquetFileReader::Open(std::move(file), properties);
    const std::shared_ptr<parquet::FileMetaData> metadata = reader_->metadata();
    for (int i = 0; i < metadata->num_columns(); ++i) {
      columns_.push_back(describe_column(*metadata->schema()->Column(i), *metadata->schema()));
    }
    for (int i = 0; i < metadata->num_row_groups(); ++i) {
      rows_of_groups_.push_back(metadata->RowGroup(i)->num_rows());
    }
  }

  const std::vector<Column>& columns() const override { return columns_; }
  const std::vector<std::int64_t>& rows_of_groups() const override { return rows_of_groups_; }

  std::unique_ptr<ParquetGroupReader> read_group(
      std::int64_t group,
      std::span<const std::size_t> columns) const override {
    return make_group_reader(reader_->RowGroup(static_cast<int>(group)), columns);
  }

 private:
  std::unique_ptr<parquet::ParquetFileReader> reader_;
  std::vector<Column> columns_;
  std::vector<std::int64_t> rows_of_groups_;
};

class ArrowLibrary : public ParquetLibrary {
 public:
  std::string describe() const override { return std::string("Arrow ") + ARROW_VERSION_STRING; }
  std::unique_ptr<ParquetFile> open(const std::string& path) const override {
    return std::make_unique<ArrowFile>(path);
  }
  std::unique_ptr<ParquetFile> open_ipc(const std::string& path) const override {
    return open_ipc_file(path);
  }
};

}  // namespace
}  // namespace satrap::data

extern "C" const satrap::data::ParquetLibrary* satrap_arrow();
const satrap::data::ParquetLibrary* satrap_arrow() {
  static const satrap::data::ArrowLibrary library;
  return &library;
}
