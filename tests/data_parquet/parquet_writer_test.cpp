#include "satrap/data/parquet_writer.h"

#include <filesystem>
#include <random>

#include <arrow/c/abi.h>
#include <arrow/c/bridge.h>
#include <arrow/table.h>
#include <gtest/gtest.h>
#include <parquet/arrow/reader.h>

#include "satrap/core/error.h"
#include "tests/data/text_files.h"
#include "tests/data_parquet/parquet_table.h"

namespace satrap::data {
namespace {

using Batches = std::vector<std::shared_ptr<arrow::RecordBatch>>;

std::shared_ptr<arrow::RecordBatch> batch_of(
    const std::vector<std::pair<std::string, std::shared_ptr<arrow::Array>>>& columns) {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const auto& [name, values] : columns) {
    fields.push_back(arrow::field(name, values->type()));
    arrays.push_back(values);
  }
  return arrow::RecordBatch::Make(arrow::schema(fields), arrays.front()->length(), arrays);
}

/// Batches of numbers, and of texts with nulls.
Batches random_batches(std::mt19937& random, int count) {
  Batches batches;
  for (int b = 0; b < count; ++b) {
    Maybe<std::int64_t> numbers;
    Maybe<std::string> texts;
    for (auto n = random() % 3000; n > 0; --n) {
      numbers.emplace_back(static_cast<std::int64_t>(random()));
      texts.emplace_back(random() % 4 == 0 ? std::nullopt
                                           : std::optional(std::string(random() % 9, 'x')));
    }
    batches.push_back(batch_of({{"n", int64s(numbers)}, {"t", strings(texts)}}));
  }
  return batches;
}

class ParquetWriterTest : public FilesTest {
 protected:
  std::string path() const { return path_of("rows.parquet"); }

  static void append(ParquetWriter& writer, const std::shared_ptr<arrow::RecordBatchReader>& from) {
    ArrowArrayStream stream;
    PARQUET_THROW_NOT_OK(arrow::ExportRecordBatchReader(from, &stream));
    try {
      writer.begin(stream);
    } catch (...) {
      EXPECT_EQ(stream.release, nullptr);
      throw;
    }
    EXPECT_EQ(stream.release, nullptr) << "it was not taken over";
    while (writer.write_batch()) continue;
  }
  static void append(ParquetWriter& writer, const Batches& batches) {
    append(writer, arrow::RecordBatchReader::Make(batches).ValueOrDie());
  }

  std::string refusal(const Batches& batches) {
    const auto writer = write_parquet(path());
    try {
      append(*writer, batches);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidData);
      return error.what();
    }
    return "nothing was refused";
  }

  std::shared_ptr<arrow::Table> written() const {
    const auto file = arrow::io::ReadableFile::Open(path()).ValueOrDie();
    const auto reader = parquet::arrow::OpenFile(file, arrow::default_memory_pool()).ValueOrDie();
    return reader->ReadTable().ValueOrDie();
  }
};

TEST_F(ParquetWriterTest, WritesTheRowsOfAllStreamsInOrder) {
  std::mt19937 random(7);
  const Batches first = random_batches(random, 5), second = random_batches(random, 2);
  const auto writer = write_parquet(path());
  append(*writer, first);
  append(*writer, second);
  EXPECT_FALSE(std::filesystem::exists(path())) << "it is not complete yet";

  Batches all = first;
  all.insert(all.end(), second.begin(), second.end());
  const auto wanted = arrow::Table::FromRecordBatches(all).ValueOrDie();
  EXPECT_EQ(writer->finish(), wanted->num_rows());
  EXPECT_TRUE(written()->Equals(*wanted));
}

TEST_F(ParquetWriterTest, CutsRowGroupsThatAreNotTooLarge) {
  Maybe<std::int64_t> numbers(300'000, 5);
  const auto writer = write_parquet(path());
  append(*writer, Batches{batch_of({{"n", int64s(numbers)}})});
  EXPECT_EQ(writer->finish(), 300'000);
  const auto file = parquet::ParquetFileReader::OpenFile(path());
  EXPECT_EQ(file->metadata()->num_row_groups(), 3);
}

TEST_F(ParquetWriterTest, WritesTextViewsOfDictionaries) {
  arrow::StringViewBuilder entries;
  for (const char* text : {"a", "longer than twelve bytes"}) {
    PARQUET_THROW_NOT_OK(entries.Append(text));
  }
  const auto indices = array_of<arrow::Int32Builder>(Maybe<std::int32_t>{1, std::nullopt, 0});
  const auto coded =
      arrow::DictionaryArray::FromArrays(indices, entries.Finish().ValueOrDie()).ValueOrDie();
  const auto writer = write_parquet(path());
  append(*writer, Batches{batch_of({{"t", coded}})});
  writer->finish();
  const auto texts = written()->column(0)->chunk(0);
  EXPECT_TRUE(texts->Equals(strings({"longer than twelve bytes", std::nullopt, "a"})));
}

TEST_F(ParquetWriterTest, LeavesNoFileOfWhatWasNotFinished) {
  {
    const auto writer = write_parquet(path());
    append(*writer, Batches{batch_of({{"n", int64s({1})}})});
  }
  EXPECT_TRUE(std::filesystem::is_empty(path_of("")));
}

TEST_F(ParquetWriterTest, NamesTheColumnThatItRefuses) {
  const auto one = int64s({1});
  EXPECT_EQ(refusal({batch_of({{"a", one}, {"a", one}})}),
            "two columns have the name 'a': rename one of them");
  const auto list = std::make_shared<arrow::ListArray>(
      arrow::list(arrow::list(arrow::int64())), 1, arrow::Buffer::FromVector<std::int32_t>({0, 0}),
      lists_of<arrow::Int64Builder, std::int64_t>({}));
  EXPECT_NE(refusal({batch_of({{"nested", list}})}).find("column 'nested' is of type list<"),
            std::string::npos);
}

TEST_F(ParquetWriterTest, RefusesOtherColumnsInALaterStream) {
  const auto writer = write_parquet(path());
  append(*writer, Batches{batch_of({{"a", int64s({1})}})});
  EXPECT_THROW(append(*writer, Batches{batch_of({{"b", int64s({1})}})}), Error);
  EXPECT_THROW(append(*writer, Batches{batch_of({{"a", strings({"x"})}})}), Error);
}

TEST_F(ParquetWriterTest, RefusesOffsetsThatGoBack) {
  const auto texts =
      std::make_shared<arrow::StringArray>(3, arrow::Buffer::FromVector<std::int32_t>({0, 5, 2, 6}),
                                           arrow::Buffer::FromString("abcdef"));
  EXPECT_NE(refusal({batch_of({{"t", texts}})}).find("offset"), std::string::npos);
}

TEST_F(ParquetWriterTest, RefusesAFileWithoutRows) {
  const auto writer = write_parquet(path());
  append(*writer, Batches{batch_of({{"n", int64s({})}})});
  EXPECT_THROW(writer->finish(), Error);
}

TEST_F(ParquetWriterTest, PassesOnWhatAStreamSays) {
  const auto schema = arrow::schema({arrow::field("n", arrow::int64())});
  const auto broken = arrow::RecordBatchReader::MakeFromIterator(
      arrow::MakeFunctionIterator([]() -> arrow::Result<std::shared_ptr<arrow::RecordBatch>> {
        return arrow::Status::Invalid("the source is gone");
      }),
      schema);
  ASSERT_TRUE(broken.ok());
  const auto writer = write_parquet(path());
  try {
    append(*writer, *broken);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the source is gone"), std::string::npos);
  }
}

}  // namespace
}  // namespace satrap::data
