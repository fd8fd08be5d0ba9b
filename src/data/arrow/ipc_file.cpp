#include "src/data/arrow/ipc_file.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
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

/// The place of a column: a field of the file, and the fields of structs below it.
using Path = std::vector<int>;

arrow::ipc::IpcReadOptions read_options() {
  arrow::ipc::IpcReadOptions options = arrow::ipc::IpcReadOptions::Defaults();
  options.use_threads = false;
  options.ensure_alignment = arrow::ipc::Alignment::kDataTypeSpecificAlignment;
  return options;
}

/// Reads the fields of the file with these numbers, ascending; none: all.
std::shared_ptr<arrow::ipc::RecordBatchFileReader> open_reader(
    const std::shared_ptr<const RandomFile>& file,
    std::vector<int> fields) {
  arrow::ipc::IpcReadOptions options = read_options();
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
  /// The paths begin with a column of the batch.
  BatchReader(const arrow::RecordBatch& batch, const std::vector<Path>& paths) {
    for (const Path& place : paths) {
      std::shared_ptr<arrow::Array> array = batch.column(place.front());
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

/// The common part of files and streams.
class IpcColumns : public ParquetFile {
 public:
  const std::vector<Column>& columns() const override { return columns_; }
  const std::vector<std::int64_t>& rows_of_groups() const override { return rows_of_groups_; }

 protected:
  void describe(const arrow::Schema& schema) {
    for (int i = 0; i < schema.num_fields(); ++i) add_columns(*schema.field(i), "", {i});
  }
  void add_batch(const arrow::RecordBatch& batch) { rows_of_groups_.push_back(batch.num_rows()); }

  std::vector<Path> paths_of(std::span<const std::size_t> columns) const {
    std::vector<Path> paths;
    for (const std::size_t column : columns) paths.push_back(paths_[column]);
    return paths;
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

  std::vector<Column> columns_;
  std::vector<Path> paths_;  // [columns]
  std::vector<std::int64_t> rows_of_groups_;
};

class IpcFile : public IpcColumns {
 public:
  explicit IpcFile(std::shared_ptr<const RandomFile> file) : file_(std::move(file)) {
    const auto schema = open_reader(file_, {})->schema();
    describe(*schema);
    if (columns().empty()) return;
    // Batches do not say how long they are before a column of them is read.
    const auto reader = open_reader(file_, {narrowest_field(*schema)});
    for (int i = 0; i < reader->num_record_batches(); ++i) {
      PARQUET_ASSIGN_OR_THROW(const auto batch, reader->ReadRecordBatch(i));
      add_batch(*batch);
    }
  }

  std::unique_ptr<ParquetGroupReader> read_group(std::int64_t group,
                                                 std::span<const std::size_t> columns,
                                                 std::int64_t) const override {
    std::vector<Path> paths = paths_of(columns);
    std::vector<int> fields;
    for (const Path& place : paths) fields.push_back(place.front());
    std::ranges::sort(fields);
    fields.erase(std::unique(fields.begin(), fields.end()), fields.end());
    for (Path& place : paths) {
      place.front() = static_cast<int>(std::ranges::find(fields, place.front()) - fields.begin());
    }
    PARQUET_ASSIGN_OR_THROW(const auto batch,
                            open_reader(file_, fields)->ReadRecordBatch(static_cast<int>(group)));
    return std::make_unique<BatchReader>(*batch, paths);
  }

 private:
  const std::shared_ptr<const RandomFile> file_;
};

class IpcStream : public IpcColumns {
 public:
  explicit IpcStream(std::shared_ptr<const RandomFile> file) {
    const std::int64_t size = file->size();
    const std::shared_ptr<arrow::io::RandomAccessFile> input = arrow_file(std::move(file));
    PARQUET_ASSIGN_OR_THROW(const auto reader,
                            arrow::ipc::RecordBatchStreamReader::Open(input, read_options()));
    describe(*reader->schema());
    while (true) {
      std::shared_ptr<arrow::RecordBatch> batch;
      PARQUET_THROW_NOT_OK(reader->ReadNext(&batch));
      if (!batch) break;
      add_batch(*batch);
      batches_.push_back(std::move(batch));
    }
    PARQUET_ASSIGN_OR_THROW(const std::int64_t end, input->Tell());
    if (end < size) {
      throw std::runtime_error("the stream has " + std::to_string(end) + " bytes, and " +
                               std::to_string(size - end) + " follow its end");
    }
  }

  std::unique_ptr<ParquetGroupReader> read_group(std::int64_t group,
                                                 std::span<const std::size_t> columns,
                                                 std::int64_t) const override {
    return std::make_unique<BatchReader>(*batches_[static_cast<std::size_t>(group)],
                                         paths_of(columns));
  }

 private:
  std::vector<std::shared_ptr<arrow::RecordBatch>> batches_;
};

}  // namespace

std::unique_ptr<ParquetFile> open_ipc_file(std::shared_ptr<const RandomFile> file) {
  return std::make_unique<IpcFile>(std::move(file));
}

std::unique_ptr<ParquetFile> open_ipc_stream(std::shared_ptr<const RandomFile> file) {
  return std::make_unique<IpcStream>(std::move(file));
}

}  // namespace satrap::data
