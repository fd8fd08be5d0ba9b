#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/file.h"
#include "satrap/data/open_rows.h"
#include "satrap/data/validate.h"
#include "tests/data/parsed_rows.h"
#include "tests/data/text_files.h"
#include "tests/data_parquet/parquet_table.h"

namespace satrap::data {
namespace {

/// Rows of which data.train.where chooses some, in groups that are in the order of their columns
/// and in others.
class SelectedRows : public FilesTest {
 protected:
  static constexpr std::int64_t kRows = 20'000, kRowsPerGroup = 1'000;

  static std::string day_of(std::int64_t r) { return "2026-11-" + std::to_string(10 + r / 1'000); }

  SelectedRows() {
    Maybe<std::int64_t> labels, ids;
    Maybe<std::uint64_t> big;
    Maybe<std::string> days, texts;
    Maybe<double> prices;
    Maybe<float> shares;
    Maybe<bool> flags;
    std::string csv = "y,id,big,day,text,price,share,flag\n";
    for (std::int64_t r = 0; r < kRows; ++r) {
      const bool is_null = r % 11 == 0;
      labels.push_back(r % 2);
      ids.push_back(r - 5'000);
      big.push_back(~std::uint64_t{0} - static_cast<std::uint64_t>(kRows - r));
      days.push_back(day_of(r));
      texts.push_back(is_null ? std::nullopt : std::optional("t" + std::to_string(r % 100)));
      prices.push_back(is_null ? std::nullopt : std::optional(static_cast<double>(r) / 8.0));
      shares.push_back(static_cast<float>(r % 7) * 0.1F);
      flags.push_back(r >= 10'000);
      csv += concat(r % 2, ',', r - 5'000, ',', *big.back(), ',', day_of(r), ',',
                    texts.back().value_or(""), ',');
      csv += prices.back() ? std::to_string(*prices.back()) : "";
      csv +=
          concat(",", std::to_string(*shares.back()), ",", *flags.back() ? "true" : "false", '\n');
    }
    write("x.csv", csv);
    const ParquetTable table({{"y", int64s(labels)},
                              {"id", int64s(ids)},
                              {"big", array_of<arrow::UInt64Builder>(big)},
                              {"day", strings(days)},
                              {"text", strings(texts)},
                              {"price", array_of<arrow::DoubleBuilder>(prices)},
                              {"share", array_of<arrow::FloatBuilder>(shares)},
                              {"flag", array_of<arrow::BooleanBuilder>(flags)}});
    table.write(path_of("x.parquet"), kRowsPerGroup);
    table.write_ipc(path_of("x.arrow"), kRowsPerGroup);
  }

  DataConfig config(const std::string& file, const std::string& where) const {
    DataConfig config = csv_config(path_of(file), {"price"}, {"text"});
    config.schema.features.emplace_back() = {.name = "id", .type = IdType::kInt};
    config.train.where = where;
    validate(config);
    return config;
  }

  static std::vector<ParsedRow> read(const DataConfig& config, const RowPass& pass = {}) {
    const auto rows = open_rows(Dataset(config), Role::kTrain, pass);
    return all_rows(*rows);
  }
};

TEST_F(SelectedRows, AreThoseOfTheSameCsv) {
  for (const std::string where :
       {"day >= 2026-11-13 and day < 2026-11-15", "id < -4990", "id > 14990",
        "id in (-5000, 3, 14999, 20000)", "big > 18446744073709550615",
        "big = 18446744073709551610", "text = t7", "text = ''", "text != t7 and price < 100",
        "text not in (t7, '') and id >= 0 and id < 50", "price >= 2499.5", "id = '5'",
        "share = 0.3", "share >= 0.6 and flag = true and day = 2026-11-29",
        "flag = 0 and id > 4995", "day > 2027"}) {
    const std::vector<ParsedRow> expected = read(config("x.csv", where));
    EXPECT_EQ(expected.empty(), where == "day > 2027") << where;
    for (const std::string file : {"x.parquet", "x.arrow"}) {
      EXPECT_TRUE(read(config(file, where)) == expected) << file << ": " << where;
      EXPECT_TRUE(read(config(file, where), {.num_threads = 3}) == expected) << where;
    }
    const RowPass pass{.first_row = 4'321,
                       .max_rows = 15'678,
                       .split = {.rank = 1, .world_size = 3, .rows_per_turn = 100}};
    EXPECT_TRUE(read(config("x.parquet", where), pass) == read(config("x.csv", where), pass))
        << where;
  }
}

// Of a file whose pages are all damaged, only the groups that the condition rules out are good.
TEST_F(SelectedRows, GroupsWithoutThemAreNotRead) {
  std::string bytes = read_file(path_of("x.parquet"));
  std::uint32_t footer = 0;
  std::memcpy(&footer, bytes.data() + bytes.size() - 8, sizeof(footer));
  std::fill(bytes.begin() + 4, bytes.end() - 8 - footer, '\xFF');
  write("damaged.parquet", bytes);
  for (const std::string where : {"day >= 2026-11-30", "day = '2026-11'", "id < -5000",
                                  "id > 14999.5", "big < 5", "price > 2500", "price < 0",
                                  "share > 0.7", "flag = 2", "text = u", "id in (-6000, 15000)"}) {
    EXPECT_TRUE(read(config("damaged.parquet", where)).empty()) << where;
  }
  for (const std::string where :
       {"day >= 2026-11-29", "id < -4999", "id != 3", "text = ''", "price != 2600", "id = '5'"}) {
    EXPECT_TRUE(
        contains(error_of([&] { read(config("damaged.parquet", where)); }), "damaged.parquet"))
        << where;
  }
}

// Parquet has no type for seconds: it gets these as milliseconds.
TEST_F(SelectedRows, DatesAndTimesAreTexts) {
  constexpr std::int64_t kFirstDay = 20'784, kTimes = 96;  // 2026-11-27; every 15 minutes
  Maybe<std::int64_t> labels;
  Maybe<std::int32_t> days;
  std::vector<Maybe<std::int64_t>> times(4);
  for (std::int64_t r = 0; r < 3 * kTimes; ++r) {
    labels.push_back(r % 2);
    days.push_back(static_cast<std::int32_t>(kFirstDay + r / kTimes));
    const std::int64_t second = kFirstDay * 86'400 + r * 900;
    constexpr std::int64_t kPerSecond[] = {1, 1'000, 1'000'000, 1'000'000'000};
    for (std::size_t i = 0; i < times.size(); ++i) {
      times[i].push_back(r == 5 ? std::nullopt : std::optional(second * kPerSecond[i]));
    }
  }
  const auto pool = arrow::default_memory_pool();
  const auto time_of = [&](std::size_t i, arrow::TimeUnit::type unit, const std::string& zone) {
    return array_of<arrow::TimestampBuilder>(
        times[i], arrow::TimestampBuilder(arrow::timestamp(unit, zone), pool));
  };
  const ParquetTable table({{"y", int64s(labels)},
                            {"day", array_of<arrow::Date32Builder>(days)},
                            {"s", time_of(0, arrow::TimeUnit::SECOND, "")},
                            {"ms", time_of(1, arrow::TimeUnit::MILLI, "")},
                            {"us", time_of(2, arrow::TimeUnit::MICRO, "UTC")},
                            {"ns", time_of(3, arrow::TimeUnit::NANO, "Europe/Rome")}});
  table.write(path_of("time.parquet"), kTimes);
  table.write_ipc(path_of("time.arrow"), kTimes);
  for (const std::string file : {"time.parquet", "time.arrow"}) {
    const auto count = [&](const std::string& where) {
      DataConfig config = csv_config(path_of(file), {"y"}, {});
      config.train.where = where;
      return std::ssize(read(config));
    };
    EXPECT_EQ(count("day >= 2026-11-28"), 2 * kTimes);
    EXPECT_EQ(count("day = 2026-11-29"), kTimes);
    EXPECT_EQ(count("day > 2026-11-29"), 0);
    for (const std::string column : {"s", "ms", "us", "ns"}) {
      EXPECT_EQ(count(column + " >= 2026-11-28"), 2 * kTimes) << column;
      EXPECT_EQ(count(column + " < 2026-11-27T06:00:00"), 23) << column;
      EXPECT_EQ(count(column + " < 2026-11-27T06"), 23) << column;
      EXPECT_EQ(count(column + " = 2026-11-28T00:15:00"), 1) << column;
      for (const char* const wrong :
           {"2026-11-27T06:00:00Z", "'2026-11-27 06:00:00'", "1795813509", "2026", "yesterday"}) {
        const std::string message =
            error_of([&] { count(column + " < " + wrong); }, ErrorCode::kInvalidConfig);
        EXPECT_TRUE(contains(message, "data.train.where: column '" + column + "' (")) << message;
        EXPECT_TRUE(contains(message, "write 2026-11-27 or 2026-11-27T21:05:09.125")) << message;
      }
      EXPECT_EQ(count(column + " = ''"), 1) << column;
    }
  }
}

TEST_F(SelectedRows, AListCannotSelect) {
  ParquetTable(
      {{"y", int64s({1})},
       {"items", lists_of<arrow::Int64Builder, std::int64_t>({Maybe<std::int64_t>{1, 2}})}})
      .write(path_of("list.parquet"));
  DataConfig lists = csv_config(path_of("list.parquet"), {}, {});
  lists.schema.features.emplace_back() = {.name = "items", .type = IdType::kInt};
  lists.train.where = "items = 1";
  EXPECT_TRUE(contains(error_of([&] { read(lists); }, ErrorCode::kInvalidConfig),
                       "cannot be used as data.train.where: a list is read as ids alone"));
}

}  // namespace
}  // namespace satrap::data
