#include "src/data/arrow/ipc_file.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <arrow/array.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <parquet/exception.h>

#include "src/data/arrow/array_values.h"
#include "src/data/arrow/arrow_file.h"

namespace satrap::data {
namespace {

/// Where a column is: a field of the file, and the fields of structs below it.
using Path = std::vector<int>;

/// Reads the fields of the file with these numbers, ascending; none: all.
std::shared_ptr<arrow::ipc::RecordBatchFileReader> open_reader(
    const std::shared_ptr<const RandomFile>& file,
    std::vector<int> fields) {
  arrow::ipc::IpcReadOptions options = arrow::ipc::IpcReadOptions::Defaults();
  options.use_threads = false;
  options.ensure_alignment = arrow::ipc::Alignment::kDataTypeSpecificAlignment;
  options.included_fields = std::move(fields);
  PARQUET_ASSIGN_OR_THROW(auto reader,
                          arrow::ipc::RecordBatchFileReader::Open(arrow_file(file), options));
  return reader;
}

/// The field of the file that takes the fewest bytes to read, as far as its type shows.
int narrowest_field(const arrow::Schema& schema) {
  const auto width = [&](int field) {
    const arrow::DataType& type = *schema.field(field)->type();
    return arrow::is_primitive(type.id()) ? type.bit_width() : std::numeric_limits<int>::max();
  };
  int narrowest = 0;
  for (int i = 1; i < schema.num_fields(); ++i) {
    if (width(i) < width(narrowest)) narrowest = i;
  }
  return narrowest;
}

class BatchReader : public ParquetGroupReader {
 public:
  BatchReader(const std::shared_ptr<const RandomFile>& file,
              std::int64_t group,
              const std::vector<Path>& paths) {
    std::vector<int> fields;
    for (const Path& place : paths) fields.push_back(place.front());
    std::ranges::sort(fields);
    fields.erase(std::unique(fields.begin(), fields.end()), fields.end());
    PARQUET_ASSIGN_OR_THROW(const auto batch,
                            open_reader(file, fields)->ReadRecordBatch(static_cast<int>(group)));
    for (const Path& place : paths) {
      const auto field = std::ranges::find(fields, place.front()) - fields.begin();
      std::shared_ptr<arrow::Array> array = batch->column(static_cast<int>(field));
      PARQUET_THROW_NOT_OK(array->ValidateFull());  // before anything follows its offsets
      for (std::size_t i = 1; i < place.size(); ++i) {
        const auto parent = std::static_pointer_cast<arrow::StructArray>(array);
        PARQUET_ASSIGN_OR_THROW(array, parent->GetFlattenedField(place[i]));
      }
      columns_.emplace_back(std::move(array));
    }
  }

  void read(std::int64_t num_rows, std::span<ParquetValues> columns) override {
    for (std::size_t i = 0; i < columns_.size(); ++i) columns_[i].read(num_rows, columns[i]);
  }

  void skip(std::int64_t num_rows) override {
    for (ArrayValues& column : columns_) column.skip(num_rows);
  }

 private:
  std::vector<ArrayValues> columns_;
};

class IpcFile : public ParquetFile {
 public:
  explicit IpcFile(std::shared_ptr<const RandomFile> file) : file_(std::move(file)) {
    const auto schema = open_reader(file_, {})->schema();
    for (int i = 0; i < schema->num_fields(); ++i) add_columns(*schema->field(i), "", {i});
    if (paths_.empty()) return;
    // Batches do not say how long they are before a column of them is read.
    const auto reader = open_reader(file_, {narrowest_field(*schema)});
    for (int i = 0; i < reader->num_record_batches(); ++i) {
      PARQUET_ASSIGN_OR_THROW(const auto batch, reader->ReadRecordBatch(i));
      rows_of_groups_.push_back(batch->num_rows());
    }
  }

  const std::vector<Column>& columns() const override { return columns_; }
  const std::vector<std::int64_t>& rows_of_groups() const override { return rows_of_groups_; }

  std::unique_ptr<ParquetGroupReader> read_group(std::int64_t group,
                                                 std::span<const std::size_t> columns,
                                                 std::int64_t) const override {
    std::vector<Path> paths;
    for (const std::size_t column : columns) paths.push_back(paths_[column]);
    return std::make_unique<BatchReader>(file_, group, paths);
  }

 private:
  void add_columns(const arrow::Field& field, const std::string& prefix, const Path& place) {
    const arrow::DataType& type = *field.type();
    if (type.id() != arrow::Type::STRUCT) {
      columns_.push_back(describe_type(type));
      columns_.back().name = prefix + field.name();
      paths_.push_back(place);
      return;
    }
    for (int i = 0; i < type.num_fields(); ++i) {
      Path below = place;
      below.push_back(i);
      add_columns(*type.field(i), prefix + field.name() + ".", below);
    }
  }

  const std::shared_ptr<const RandomFile> file_;
  std::vector<Column> columns_;
  std::vector<Path> paths_;  // [columns]
  std::vector<std::int64_t> rows_of_groups_;
};

}  // namespace

std::unique_ptr<ParquetFile> open_ipc_file(std::shared_ptr<const RandomFile> file) {
  return std::make_unique<IpcFile>(std::move(file));
}

}  // namespace satrap::data
