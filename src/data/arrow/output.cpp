#include "src/data/arrow/output.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <utility>

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/c/bridge.h>
#include <arrow/io/file.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>
#include <parquet/properties.h>

#include "src/data/arrow/array_values.h"

namespace satrap::data {
namespace {

[[noreturn]] void refuse_rows(const std::string& why) { throw std::invalid_argument(why); }

/// What a stream or its batches say.
void check_rows(const arrow::Status& status) {
  if (!status.ok()) refuse_rows(status.message());
}

/// A struct is read as its parts.
void check_type(const std::string& name, const arrow::DataType& type) {
  if (type.id() == arrow::Type::STRUCT && type.num_fields() > 0) {
    for (const auto& part : type.fields()) check_type(name + "." + part->name(), *part->type());
    return;
  }
  const bool is_empty = type.id() == arrow::Type::STRUCT;
  if (!is_empty && describe_type(type).kind != ParquetFile::Kind::kOther) return;
  refuse_rows("column '" + name + "' is of type " + type.ToString() +
              ", which satrap does not read: convert it to numbers, texts, truth values, dates or "
              "times, or to lists of integers or texts; or leave the column out");
}

void check_columns(const arrow::Schema& schema) {
  if (schema.num_fields() == 0) refuse_rows("the rows have no columns");
  std::set<std::string> names;
  for (const auto& field : schema.fields()) {
    if (!names.insert(field->name()).second) {
      refuse_rows("two columns have the name '" + field->name() + "': rename one of them");
    }
    check_type(field->name(), *field->type());
  }
}

void check_same_columns(const arrow::Schema& first, const arrow::Schema& next) {
  for (const auto& field : first.fields()) {
    const auto other = next.GetFieldByName(field->name());
    if (!other) refuse_rows("a later batch has no column '" + field->name() + "' as the first has");
    if (field->type()->Equals(*other->type())) continue;
    refuse_rows("column '" + field->name() + "' is of type " + field->type()->ToString() +
                " in the first batch, and of type " + other->type()->ToString() +
                " in a later one: convert it to the same");
  }
  for (const auto& field : next.fields()) {
    if (!first.GetFieldByName(field->name())) {
      refuse_rows("a later batch has a column '" + field->name() + "', and the first has none");
    }
  }
  if (!first.Equals(next, /*check_metadata=*/false)) {
    refuse_rows("a later batch has its columns in another order than the first");
  }
}

bool has_views(const arrow::DataType& type) {
  return type.id() == arrow::Type::DICTIONARY &&
         static_cast<const arrow::DictionaryType&>(type).value_type()->id() ==
             arrow::Type::STRING_VIEW;
}

/// A dictionary of texts in the form that Arrow can write.
std::shared_ptr<arrow::Array> without_views(const arrow::DictionaryArray& array) {
  const auto& entries = static_cast<const arrow::StringViewArray&>(*array.dictionary());
  arrow::StringBuilder texts;
  for (std::int64_t i = 0; i < entries.length(); ++i) {
    check_rows(entries.IsNull(i) ? texts.AppendNull() : texts.Append(entries.GetView(i)));
  }
  std::shared_ptr<arrow::Array> dictionary;
  check_rows(texts.Finish(&dictionary));
  return std::make_shared<arrow::DictionaryArray>(
      arrow::dictionary(array.indices()->type(), arrow::utf8()), array.indices(), dictionary);
}

std::shared_ptr<arrow::Schema> without_views(const arrow::Schema& schema) {
  arrow::FieldVector fields = schema.fields();
  for (auto& field : fields) {
    if (!has_views(*field->type())) continue;
    const auto& type = static_cast<const arrow::DictionaryType&>(*field->type());
    field = field->WithType(arrow::dictionary(type.index_type(), arrow::utf8()));
  }
  return arrow::schema(std::move(fields));
}

/// Few enough for the memory that a row group takes until it is written.
std::int64_t rows_of_group(const arrow::Schema& schema) {
  constexpr std::int64_t kMostRows = std::int64_t{128} << 10;
  constexpr std::int64_t kFewestRows = 2048;
  constexpr std::int64_t kValues = std::int64_t{8} << 20;
  return std::clamp(kValues / schema.num_fields(), kFewestRows, kMostRows);
}

class ArrowOutput : public ParquetOutput {
 public:
  explicit ArrowOutput(const std::string& path) {
    PARQUET_ASSIGN_OR_THROW(file_, arrow::io::FileOutputStream::Open(path));
  }

  void begin(ArrowArrayStream& stream) override {
    auto imported = arrow::ImportRecordBatchReader(&stream);
    if (!imported.ok()) refuse_rows("no table of rows: " + imported.status().message());
    batches_ = *std::move(imported);
    if (writer_) {
      check_same_columns(*schema_, *batches_->schema());
      return;
    }
    schema_ = batches_->schema();
    check_columns(*schema_);
    written_ = without_views(*schema_);
    parquet::WriterProperties::Builder properties;
    properties.compression(arrow::Compression::SNAPPY);
    properties.max_row_group_length(rows_of_group(*schema_));
    auto opened = parquet::arrow::FileWriter::Open(*written_, arrow::default_memory_pool(), file_,
                                                   properties.build());
    check_rows(opened.status());
    writer_ = *std::move(opened);
  }

  bool write_batch() override {
    std::shared_ptr<arrow::RecordBatch> batch;
    check_rows(batches_->ReadNext(&batch));
    if (!batch) {
      batches_.reset();
      return false;
    }
    check_rows(batch->ValidateFull());  // before anything follows its offsets
    arrow::ArrayVector columns = batch->columns();
    for (auto& column : columns) {
      if (!has_views(*column->type())) continue;
      column = without_views(static_cast<const arrow::DictionaryArray&>(*column));
    }
    const auto rows = arrow::RecordBatch::Make(written_, batch->num_rows(), std::move(columns));
    const arrow::Status done = writer_->WriteRecordBatch(*rows);
    if (!done.IsIOError()) check_rows(done);
    PARQUET_THROW_NOT_OK(done);
    num_rows_ += batch->num_rows();
    return true;
  }

  std::int64_t finish() override {
    if (num_rows_ == 0) refuse_rows("there are no rows");
    PARQUET_THROW_NOT_OK(writer_->Close());
    PARQUET_THROW_NOT_OK(file_->Close());
    return num_rows_;
  }

 private:
  std::shared_ptr<arrow::io::FileOutputStream> file_;
  std::shared_ptr<arrow::RecordBatchReader> batches_;
  std::shared_ptr<arrow::Schema> schema_, written_;  // as given, and of the file
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
  std::int64_t num_rows_ = 0;
};

}  // namespace

std::unique_ptr<ParquetOutput> create_output(const std::string& path) {
  return std::make_unique<ArrowOutput>(path);
}

}  // namespace satrap::data
