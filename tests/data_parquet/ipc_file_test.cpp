#include "src/data/arrow/ipc_file.h"

#include <gtest/gtest.h>

#include "satrap/core/hash.h"
#include "satrap/data/open_rows.h"
#include "satrap/data/row_count.h"
#include "satrap/data/sample.h"
#include "tests/data/parsed_rows.h"
#include "tests/data/text_files.h"
#include "tests/data_parquet/parquet_table.h"

namespace satrap::data {
namespace {

using Ids = std::vector<std::uint64_t>;

/// The values as a dictionary.
std::shared_ptr<arrow::Array> coded(const Maybe<std::string>& values) {
  arrow::Dictionary32Builder<arrow::StringType> builder;
  for (const auto& value : values) {
    PARQUET_THROW_NOT_OK(value ? builder.Append(*value) : builder.AppendNull());
  }
  return builder.Finish().ValueOrDie();
}

class IpcFileTest : public FilesTest {
 protected:
  static std::vector<ParsedRow> read(const DataConfig& config, const RowPass& pass = {}) {
    return all_rows(*open_rows(Dataset(config), Role::kTrain, pass));
  }

  static ParquetTable typed_table() {
    return ParquetTable(
        {{"user", int64s({17, -5, std::nullopt, 1LL << 60})},
         {"unread", array_of<arrow::StringBuilder>(Maybe<std::string>{"a", "b", "c", "d"})},
         {"small", array_of<arrow::Int8Builder>(Maybe<std::int8_t>{1, std::nullopt, -3, 0})},
         {"big", array_of<arrow::UInt64Builder>(Maybe<std::uint64_t>{~0ULL, 2, std::nullopt, 4})},
         {"city", coded({"Rome", "", std::nullopt, "Rome"})},
         {"code", array_of<arrow::LargeStringBuilder>(
                      Maybe<std::string>{"68fd1e64", "ff", std::nullopt, "ffffffffffffffff"})},
         {"price", array_of<arrow::DoubleBuilder>(Maybe<double>{0.1, -2.5e10, std::nullopt, 3.0})},
         {"share", array_of<arrow::FloatBuilder>(Maybe<float>{0.1F, 1e-3F, std::nullopt, 7.0F})},
         {"items", lists_of<arrow::Int32Builder, std::int32_t>(
                       {Maybe<std::int32_t>{1, 2, std::nullopt}, Maybe<std::int32_t>{},
                        std::nullopt, Maybe<std::int32_t>{3}})},
         {"none", std::make_shared<arrow::NullArray>(4)},
         {"y", array_of<arrow::BooleanBuilder>(Maybe<bool>{true, false, true, false})}});
  }
  DataConfig typed_config(const std::string& path) const {
    DataConfig config =
        csv_config(path, {"small", "price", "share", "big"}, {"user", "city", "items", "none"});
    config.schema.features[2].separator = "|";
    config.schema.features.emplace_back() = {
        .name = "big_id", .column = "big", .type = IdType::kInt};
    config.schema.features.emplace_back() = {
        .name = "code_hex", .column = "code", .type = IdType::kHex};
    return config;
  }
  std::string typed_csv() const {
    return write("x.csv",
                 "user,unread,small,big,city,code,price,share,items,none,y\n"
                 "17,a,1,18446744073709551615,Rome,68fd1e64,0.1,0.1,1|2,,true\n"
                 "-5,b,,2,,ff,-2.5e10,1e-3,,,false\n"
                 ",c,-3,,,,,,,,true\n"
                 "1152921504606846976,d,0,4,Rome,ffffffffffffffff,3,7,3,,false\n");
  }
};

TEST_F(IpcFileTest, HasTheRowsOfTheSameCsv) {
  const auto expected = read(typed_config(typed_csv()));
  ASSERT_EQ(expected.size(), 4U);
  for (const std::int64_t rows : {1, 2, 3, 100}) {
    const DataConfig config =
        typed_config(typed_table().write_ipc(path_of("x.arrow"), rows, arrow::Compression::ZSTD));
    EXPECT_EQ(count_rows(Dataset(config)), 4);
    for (const std::int64_t threads : {1, 3}) {
      EXPECT_EQ(read(config, {.num_threads = threads}), expected) << rows;
    }
    const auto rest = read(config, {.first_row = 3});
    ASSERT_EQ(rest.size(), 1U);
    EXPECT_EQ(rest.front(), expected.back());
  }
  EXPECT_EQ(read(typed_config(typed_table().write_ipc(path_of("plain.feather")))), expected);
}

TEST_F(IpcFileTest, ViewsAreTexts) {
  const std::string is_long = "longer than the twelve bytes that a view holds";
  const Maybe<std::string> cities{"Rome", std::nullopt, is_long};
  const ParquetTable table({{"a", array_of<arrow::StringViewBuilder>(cities)},
                            {"b", array_of<arrow::BinaryViewBuilder>(cities)},
                            {"y", int64s({1, 0, 1})}});
  const auto rows = read(csv_config(table.write_ipc(path_of("x.arrow")), {}, {"a", "b"}));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].bags, (std::vector<Ids>{{hash_bytes("Rome")}, {hash_bytes("Rome")}}));
  EXPECT_EQ(rows[1].bags, (std::vector<Ids>{{}, {}}));
  EXPECT_EQ(rows[2].bags, (std::vector<Ids>{{hash_bytes(is_long)}, {hash_bytes(is_long)}}));
}

TEST_F(IpcFileTest, PartsOfStructsAreColumns) {
  const auto user = arrow::StructArray::Make(
                        {int64s({7, 8, std::nullopt}), strings({"Bern", std::nullopt, "Rome"})},
                        std::vector<std::string>{"id", "city"})
                        .ValueOrDie();
  const ParquetTable table({{"y", int64s({1, 0, 1})}, {"user", user}});
  const auto rows =
      read(csv_config(table.write_ipc(path_of("x.arrow")), {"user.id"}, {"user.city"}));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].bags, (std::vector<Ids>{{hash_bytes("Bern")}}));
  EXPECT_EQ(rows[1].bags, (std::vector<Ids>{{}}));
  EXPECT_EQ(rows[1].numeric, (std::vector<std::string>{show(8.0F)}));
  EXPECT_EQ(rows[2].numeric, (std::vector<std::string>{"-"}));
}

TEST_F(IpcFileTest, WhatCannotBeReadIsRefusedByName) {
  const ParquetTable table(
      {{"y", int64s({1, 0})}, {"when", array_of<arrow::Date32Builder>(Maybe<std::int32_t>{1, 2})}});
  const std::string path = table.write_ipc(path_of("x.arrow"));
  const std::string error =
      error_of([&] { read(csv_config(path, {"when"}, {"y"})); }, ErrorCode::kInvalidConfig);
  EXPECT_TRUE(contains(error, "column 'when' (date32[day]) cannot be used as number")) << error;
  EXPECT_TRUE(
      contains(error_of([&] { read(csv_config(path, {}, {"x"})); }, ErrorCode::kInvalidConfig),
               "no column 'x'"));
  const std::string text = write("text.arrow", "y,a\n1,2\n");
  EXPECT_TRUE(contains(error_of([&] { read(csv_config(text, {}, {"a"})); }),
                       "is neither a Parquet file nor an Arrow file"));
  const std::string stream = write("stream.arrow", std::string("\xFF\xFF\xFF\xFF\x08", 5));
  EXPECT_TRUE(
      contains(error_of([&] { read(csv_config(stream, {}, {"a"})); }), "is an Arrow stream"));
}

TEST_F(IpcFileTest, DamageIsAnErrorOrOtherRows) {
  const std::string path = typed_table().write_ipc(path_of("x.arrow"), 2);
  std::ifstream file(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  for (const std::size_t size : {std::size_t{6}, whole.size() / 2, whole.size() - 1}) {
    const std::string cut = write("cut.arrow", whole.substr(0, size));
    EXPECT_TRUE(
        contains(error_of([&] { read(typed_config(cut)); }), "is an incomplete Arrow file"));
  }
  RandomStream random{3};
  std::int64_t refused = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    std::string garbled = whole;
    garbled[8 + random.below(2 * i, whole.size() - 16)] =
        static_cast<char>(random.below(2 * i + 1, 256));
    const DataConfig config = typed_config(write("garbled.arrow", garbled));
    try {
      read(config);
    } catch (const Error& error) {
      EXPECT_TRUE(contains(error.what(), "garbled.arrow")) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST_F(IpcFileTest, ASampleHasItsColumns) {
  const Sample sample = read_sample({typed_table().write_ipc(path_of("x.feather"), 3)}, 100);
  EXPECT_EQ(sample.total_rows, 4);
  EXPECT_EQ(sample.names.at(8), "items");
  EXPECT_EQ(sample.lists, std::vector<std::string>{"items"});
  EXPECT_EQ(sample.columns.at(8), (std::vector<std::string>{"1|2|", "", "", "3"}));
  EXPECT_EQ(sample.columns.at(4), (std::vector<std::string>{"Rome", "", "", "Rome"}));
}

}  // namespace
}  // namespace satrap::data
