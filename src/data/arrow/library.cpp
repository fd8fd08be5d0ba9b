#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <arrow/util/config.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include "src/data/arrow/arrow_file.h"
#include "src/data/arrow/column_kind.h"
#include "src/data/arrow/group_bounds.h"
#include "src/data/arrow/group_reader.h"
#include "src/data/arrow/ipc_file.h"
#include "src/data/arrow/open_group.h"
#include "src/data/arrow/output.h"
#include "src/data/columnar/parquet.h"

namespace satrap::data {
namespace {

class ArrowFile : public ParquetFile {
 public:
  explicit ArrowFile(const std::shared_ptr<const RandomFile>& file)
      : source_{.file = arrow_file(file), .piece_bytes = file->piece_bytes(), .metadata = nullptr} {
    source_.metadata = parquet::ReadMetaData(source_.file);
    const parquet::FileMetaData& metadata = *source_.metadata;
    columns_ = describe_columns(*metadata.schema());
    for (int i = 0; i < metadata.num_row_groups(); ++i) {
      rows_of_groups_.push_back(metadata.RowGroup(i)->num_rows());
    }
  }

  const std::vector<Column>& columns() const override { return columns_; }
  const std::vector<std::int64_t>& rows_of_groups() const override { return rows_of_groups_; }

  bool find_bounds(std::int64_t group, std::size_t column, ParquetValues& bounds) const override {
    return !columns_[column].is_list &&
           find_group_bounds(*source_.metadata, static_cast<int>(group), static_cast<int>(column),
                             bounds);
  }

  std::unique_ptr<ParquetGroupReader> read_group(std::int64_t group,
                                                 std::span<const std::size_t> columns,
                                                 std::int64_t max_bytes) const override {
    return make_group_reader(
        std::make_unique<OpenGroup>(source_, static_cast<int>(group), columns, max_bytes), columns);
  }

 private:
  SharedParquet source_;
  std::vector<Column> columns_;
  std::vector<std::int64_t> rows_of_groups_;
};

class ArrowLibrary : public ParquetLibrary {
 public:
  std::string describe() const override { return std::string("Arrow ") + ARROW_VERSION_STRING; }
  std::unique_ptr<ParquetFile> open(std::shared_ptr<const RandomFile> file) const override {
    return std::make_unique<ArrowFile>(file);
  }
  std::unique_ptr<ParquetFile> open_ipc(std::shared_ptr<const RandomFile> file) const override {
    return open_ipc_file(std::move(file));
  }
  std::unique_ptr<ParquetFile> open_stream(std::shared_ptr<const RandomFile> file) const override {
    return open_ipc_stream(std::move(file));
  }
  std::unique_ptr<ParquetOutput> create(const std::string& path) const override {
    return create_output(path);
  }
};

}  // namespace
}  // namespace satrap::data

extern "C" const satrap::data::ParquetLibrary* satrap_arrow();
const satrap::data::ParquetLibrary* satrap_arrow() {
  static const satrap::data::ArrowLibrary library;
  return &library;
}
