#include "src/data/look/parquet_sample.h"

#include <gtest/gtest.h>

#include "tests/data/text_files.h"
#include "tests/data_parquet/parquet_table.h"

namespace satrap::data {
namespace {

using Strings = std::vector<std::string>;
using ParquetSampleTest = FilesTest;

TEST_F(ParquetSampleTest, HasTextsOfTheColumnsThatAreRead) {
  ParquetTable({{"y", int64s({1, 0, 1})},
                {"day", array_of<arrow::Date32Builder>(Maybe<int>{1, 2, 3})},
                {"n", array_of<arrow::DoubleBuilder>(Maybe<double>{2.0, 0.5, std::nullopt})},
                {"items", lists_of<arrow::Int64Builder, std::int64_t>({{{1, 2}}, {{}}, {{7}}})},
                {"city", strings({"Rome", std::nullopt, "Bonn"})}})
      .write(path_of("a.parquet"), 2);
  const Sample sample = read_sample({path_of("a.parquet"), path_of("a.parquet")}, 5);
  EXPECT_EQ(sample.names, (Strings{"y", "n", "items", "city"}));
  EXPECT_EQ(sample.columns[0], (Strings{"1", "0", "1", "1", "0"}));
  EXPECT_EQ(sample.columns[1], (Strings{"2.0", "0.5", "", "2.0", "0.5"}));
  EXPECT_EQ(sample.columns[2], (Strings{"1|2", "", "7", "1|2", ""}));
  EXPECT_EQ(sample.columns[3], (Strings{"Rome", "", "Bonn", "Rome", ""}));
  EXPECT_EQ(sample.num_rows, 5);
  EXPECT_EQ(sample.total_rows, 6);
  EXPECT_FALSE(sample.is_whole);
  EXPECT_TRUE(sample.delimiter.empty());
}

TEST_F(ParquetSampleTest, FilesMustAgree) {
  const std::string a = ParquetTable({{"y", int64s({1})}}).write(path_of("a.parquet"));
  const std::string b = ParquetTable({{"z", int64s({1})}}).write(path_of("b.parquet"));
  const std::string none = ParquetTable({{"y", int64s({})}}).write(path_of("none.parquet"));
  EXPECT_EQ(error_of([&] { read_sample({a, b}, 5); }),
            "'" + b + "' has no column 'y' as the file before it does");
  EXPECT_EQ(error_of([&] { read_sample({none}, 5); }), "'" + none + "' has no rows");
  EXPECT_TRUE(read_sample({none, a}, 5).is_whole);
}

}  // namespace
}  // namespace satrap::data
