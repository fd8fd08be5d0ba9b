#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/writer.h>
#include <arrow/util/compression.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>

namespace satrap::data {

template <class T>
using Maybe = std::vector<std::optional<T>>;

/// The values as an array of this type of Arrow's; nullopt: null.
template <class Builder, class T>
std::shared_ptr<arrow::Array> array_of(const Maybe<T>& values, Builder builder = Builder()) {
  for (const std::optional<T>& value : values) {
    PARQUET_THROW_NOT_OK(value ? builder.Append(*value) : builder.AppendNull());
  }
  return builder.Finish().ValueOrDie();
}

template <class Builder, class T>
std::shared_ptr<arrow::Array> lists_of(const Maybe<Maybe<T>>& rows) {
  const auto elements = std::make_shared<Builder>();
  arrow::ListBuilder builder(arrow::default_memory_pool(), elements);
  for (const std::optional<Maybe<T>>& row : rows) {
    PARQUET_THROW_NOT_OK(row ? builder.Append() : builder.AppendNull());
    for (const std::optional<T>& value : row.value_or(Maybe<T>())) {
      PARQUET_THROW_NOT_OK(value ? elements->Append(*value) : elements->AppendNull());
    }
  }
  return builder.Finish().ValueOrDie();
}

inline std::shared_ptr<arrow::Array> int64s(const Maybe<std::int64_t>& values) {
  return array_of<arrow::Int64Builder>(values);
}
inline std::shared_ptr<arrow::Array> strings(const Maybe<std::string>& values) {
  return array_of<arrow::StringBuilder>(values);
}

/// A file of Parquet in the making.
class ParquetTable {
 public:
  explicit ParquetTable(
      const std::vector<std::pair<std::string, std::shared_ptr<arrow::Array>>>& columns = {}) {
    for (const auto& [name, values] : columns) {
      fields_.push_back(arrow::field(name, values->type()));
      columns_.push_back(values);
    }
  }

  /// Returns `path`.
  std::string write(const std::string& path,
                    std::int64_t rows_per_group = 1 << 20,
                    bool has_dictionaries = true,
                    parquet::Compression::type compression = parquet::Compression::SNAPPY,
                    std::int64_t page_bytes = 1 << 20) const {
    auto file = arrow::io::FileOutputStream::Open(path).ValueOrDie();
    parquet::WriterProperties::Builder properties;
    properties.compression(compression)->data_pagesize(page_bytes);
    if (!has_dictionaries) properties.disable_dictionary();
    const auto table = arrow::Table::Make(arrow::schema(fields_), columns_);
    PARQUET_THROW_NOT_OK(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), file,
                                                    rows_per_group, properties.build()));
    PARQUET_THROW_NOT_OK(file->Close());
    return path;
  }

  /// The same as a file of Arrow IPC.
  std::string write_ipc(
      const std::string& path,
      std::int64_t rows_per_batch = 1 << 20,
      arrow::Compression::type compression = arrow::Compression::UNCOMPRESSED) const {
    auto file = arrow::io::FileOutputStream::Open(path).ValueOrDie();
    const auto schema = arrow::schema(fields_);
    auto options = arrow::ipc::IpcWriteOptions::Defaults();
    if (compression != arrow::Compression::UNCOMPRESSED) {
      options.codec = arrow::util::Codec::Create(compression).ValueOrDie();
    }
    const auto writer = arrow::ipc::MakeFileWriter(file, schema, options).ValueOrDie();
    const auto table = arrow::Table::Make(schema, columns_);
    PARQUET_THROW_NOT_OK(writer->WriteTable(*table, rows_per_batch));
    PARQUET_THROW_NOT_OK(writer->Close());
    PARQUET_THROW_NOT_OK(file->Close());
    return path;
  }

  /// The same as a stream of Arrow IPC, in memory.
  std::string ipc_stream(std::int64_t rows_per_batch = 1 << 20) const {
    const auto sink = arrow::io::BufferOutputStream::Create().ValueOrDie();
    const auto schema = arrow::schema(fields_);
    const auto writer = arrow::ipc::MakeStreamWriter(sink, schema).ValueOrDie();
    PARQUET_THROW_NOT_OK(writer->WriteTable(*arrow::Table::Make(schema, columns_), rows_per_batch));
    PARQUET_THROW_NOT_OK(writer->Close());
    return sink->Finish().ValueOrDie()->ToString();
  }

 private:
  std::vector<std::shared_ptr<arrow::Field>> fields_;
  std::vector<std::shared_ptr<arrow::Array>> columns_;
};

}  // namespace satrap::data
