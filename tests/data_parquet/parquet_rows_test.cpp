#include "src/data/columnar/parquet_rows.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "satrap/core/hash.h"
#include "satrap/data/open_rows.h"
#include "satrap/data/row_count.h"
#include "src/data/rows/row_selection.h"
#include "tests/data/parsed_rows.h"
#include "tests/data/text_files.h"
#include "tests/data_parquet/parquet_table.h"

namespace satrap::data {
namespace {

class ParquetRowsTest : public FilesTest {
 protected:
  static ReadResult read(const DataConfig& config, const RowPass& pass = {}) {
    Schema schema = resolve_schema(config);
    if (pass.selection) schema.selecting = pass.selection->columns();
    ReadResult result;
    const auto policy = std::make_shared<BadRowPolicy>(
        config.on_bad_row == OnBadRow::kStop, BadRowLimit(), [&](const std::string& line) {
          if (line.find("could not be read; the first") == std::string::npos)
            result.bad.push_back(line);
        });
    ParquetRows rows(schema, list_files(config.train.path), pass, policy);
    result.rows = all_rows(rows);
    result.num_bad = policy->count();
    return result;
  }

  std::string error(const DataConfig& config, ErrorCode code = ErrorCode::kInvalidConfig) const {
    return error_of([&] { read(config); }, code);
  }

  /// The same rows as Parquet and as CSV; missing and empty, with texts that need care.
  std::string typed_parquet(bool has_dictionaries = true, std::int64_t rows_per_group = 2) const {
    return ParquetTable(
               {
                   {"user", int64s({17, -5, std::nullopt, 1LL << 60})},
                   {"unread", int64s({1, 2, 3, 4})},
                   {"small",
                    array_of<arrow::Int8Builder>(Maybe<std::int8_t>{1, std::nullopt, -3, 0})},
                   {"big", array_of<arrow::UInt64Builder>(
                               Maybe<std::uint64_t>{~0ULL, 2, std::nullopt, 4})},
                   {"word",
                    array_of<arrow::UInt32Builder>(Maybe<std::uint32_t>{~0U, 2, std::nullopt, 4})},
                   {"city", strings({"Rome", "", std::nullopt, "New York"})},
                   {"code", strings({"68fd1e64", "ff", std::nullopt, "ffffffffffffffff"})},
                   {"price",
                    array_of<arrow::DoubleBuilder>(Maybe<double>{0.1, -2.5e10, std::nullopt, 3.0})},
                   {"share",
                    array_of<arrow::FloatBuilder>(Maybe<float>{0.1F, 1e-3F, std::nullopt, 7.0F})},
                   {"y", array_of<arrow::BooleanBuilder>(Maybe<bool>{true, false, true, false})},
               })
        .write(path_of("x.parquet"), rows_per_group, has_dictionaries);
  }
  std::string typed_csv() const {
    return write("x.csv",
                 "user,unread,small,big,word,city,code,price,share,y\n"
                 "17,1,1,18446744073709551615,4294967295,Rome,68fd1e64,0.1,0.1,true\n"
                 "-5,2,,2,2,,ff,-2.5e10,1e-3,false\n"
                 ",3,-3,,,,,,,true\n"
                 "1152921504606846976,4,0,4,4,New York,ffffffffffffffff,3,7,false\n");
  }
  static DataConfig typed_config(const std::string& path) {
    DataConfig config =
        csv_config(path, {"small", "price", "share", "big", "word"}, {"user", "city", "code"});
    config.schema.features.emplace_back() = {
        .name = "user_int", .column = "user", .type = IdType::kInt};
    config.schema.features.emplace_back() = {
        .name = "big_id", .column = "big", .type = IdType::kInt};
    config.schema.features.emplace_back() = {
        .name = "code_hex", .column = "code", .type = IdType::kHex};
    return config;
  }
};

TEST_F(ParquetRowsTest, HasTheRowsOfTheSameCsv) {
  const auto expected = read_text(typed_config(typed_csv())).rows;
  ASSERT_EQ(expected.size(), 4U);
  EXPECT_EQ(read(typed_config(typed_parquet())).rows, expected);
  EXPECT_EQ(read(typed_config(typed_parquet(false, 3))).rows, expected);
}

TEST_F(ParquetRowsTest, EachUseOfAColumnAloneHasThemToo) {
  typed_parquet();
  typed_csv();
  const DataConfig all = typed_config("");
  const auto compare = [&](const NumericConfig* number, const FeatureConfig* feature) {
    for (const auto& [word, missing] : kMissingIds) {
      for (const std::vector<std::string>& tokens : {std::vector<std::string>{}, {"-5", "Rome"}}) {
        DataConfig config = csv_config(path_of("x.csv"), {}, {});
        config.schema.missing = tokens;
        if (number != nullptr) config.schema.numeric = {*number};
        if (feature != nullptr) config.schema.features = {*feature};
        if (feature != nullptr) config.schema.features.front().missing = missing;
        const auto expected = read_text(config).rows;
        config.train.path = {path_of("x.parquet")};
        EXPECT_EQ(read(config).rows, expected)
            << (number != nullptr ? number->name : feature->name);
      }
    }
  };
  for (const NumericConfig& number : all.schema.numeric) compare(&number, nullptr);
  for (const FeatureConfig& feature : all.schema.features) compare(nullptr, &feature);
}

TEST_F(ParquetRowsTest, HexDigitsOfAnyNumberWithoutADictionary) {
  const Maybe<std::string> eight = {"68fd1e64", std::nullopt, "FFFFFFFF",
                                    "",         "0badCAFE",   std::nullopt};
  Maybe<std::string> other = eight, bad = eight, none(eight.size(), std::nullopt);
  other[2] = "ff";
  bad[2] = "68fd1e6g";
  for (const auto& [word, missing] : kMissingIds) {
    for (const Maybe<std::string>& ids : {eight, other, bad, none}) {
      std::string text = "y,h\n";
      for (const std::optional<std::string>& id : ids) text += "1," + id.value_or("") + "\n";
      DataConfig config = csv_config(write("x.csv", text), {}, {"h"});
      config.schema.features[0].type = IdType::kHex;
      config.schema.features[0].missing = missing;
      const ReadResult expected = read_text(config);
      ParquetTable({{"y", int64s({1, 1, 1, 1, 1, 1})}, {"h", strings(ids)}})
          .write(path_of("x.parquet"), 6, /*has_dictionaries=*/false);
      config.train.path = {path_of("x.parquet")};
      const ReadResult found = read(config);
      EXPECT_EQ(found.rows, expected.rows);
      EXPECT_EQ(found.num_bad, expected.num_bad);
    }
  }
}

TEST_F(ParquetRowsTest, AnIntegerHashesAsItsText) {
  const auto rows = read(typed_config(typed_parquet())).rows;
  EXPECT_EQ(rows[0].bags[0], std::vector<std::uint64_t>{hash_bytes("17")});
  EXPECT_EQ(rows[0].bags[1], std::vector<std::uint64_t>{hash_bytes("Rome")});
  EXPECT_EQ(rows[0].bags[3], std::vector<std::uint64_t>{17});
  EXPECT_EQ(rows[2].bags[0], std::vector<std::uint64_t>{});
}

TEST_F(ParquetRowsTest, ListsAreBags) {
  ParquetTable({
                   {"y", int64s({1, 0, 1, 0, 1})},
                   {"items", lists_of<arrow::Int64Builder, std::int64_t>(
                                 {{{1, 2, 3}}, {{}}, std::nullopt, {{4, std::nullopt, 5}}, {{7}}})},
                   {"tags", lists_of<arrow::StringBuilder, std::string>(
                                {{{"a:2", "b"}}, {{""}}, {{}}, std::nullopt, {{"c", "a"}}})},
               })
      .write(path_of("x.parquet"), 3);
  DataConfig config = csv_config(write("x.csv",
                                       "y,items,tags\n"
                                       "1,1|2|3,a:2|b\n0,,\n1,,\n0,4||5,\n1,7,c|a\n"),
                                 {}, {});
  const auto compare = [&](const FeatureConfig& feature) {
    config.schema.features = {feature};
    config.train.path = {path_of("x.csv")};
    const auto expected = read_text(config).rows;
    config.train.path = {path_of("x.parquet")};
    const auto rows = read(config).rows;
    EXPECT_EQ(rows, expected);
    return rows;
  };
  compare({.name = "items", .separator = "|"});
  const auto rows = compare({.name = "items", .type = IdType::kInt, .separator = "|"});
  EXPECT_EQ(rows[0].bags[0], (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(rows[3].bags[0], (std::vector<std::uint64_t>{4, 5}));
  compare({.name = "items", .type = IdType::kInt, .separator = "|", .missing = MissingId::kOwnId});
  compare({.name = "items", .type = IdType::kInt, .separator = "|", .max_length = 2});
  compare({.name = "items",
           .type = IdType::kInt,
           .separator = "|",
           .max_length = 2,
           .keep = KeptIds::kLast});
  compare({.name = "tags", .separator = "|", .missing = MissingId::kOwnId});
  compare({.name = "tags", .separator = "|", .weight_separator = ":"});
  compare({.name = "tags", .separator = "|", .max_length = 1, .keep = KeptIds::kLast});
  config.schema.features.front() = {.name = "items", .type = IdType::kInt};
  EXPECT_EQ(read(config).rows[0].bags[0], (std::vector<std::uint64_t>{1, 2, 3}));  // no separator
}

TEST_F(ParquetRowsTest, DictionariesGoWithTheirRowGroup) {
  const auto keys = array_of<arrow::Int32Builder>(Maybe<int>{0, 1, std::nullopt, 1, 0, 0});
  const auto words = arrow::DictionaryArray::FromArrays(keys, strings({"red", "blue"}));
  ParquetTable({{"c", words.ValueOrDie()}, {"y", int64s({1, 0, 1, 0, 1, 0})}})
      .write(path_of("x.parquet"), 3);
  const auto rows = read(csv_config(path_of("x.parquet"), {}, {"c"})).rows;
  std::vector<std::uint64_t> ids;
  for (const ParsedRow& row : rows) ids.push_back(row.bags[0].empty() ? 0 : row.bags[0].front());
  const std::uint64_t red = hash_bytes("red"), blue = hash_bytes("blue");
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{red, blue, 0, blue, red, red}));
}

/// Rows 0 ... num_rows - 1, whose every column shows the row, in files of several groups.
class ManyRowsTest : public ParquetRowsTest {
 protected:
  static constexpr std::int64_t kRows = 9'000;

  void SetUp() override {
    part(0, 5'000, 2'100);
    part(5'000, 5'000, 100);  // no row
    part(5'000, kRows, 700);
    std::ofstream text(path_of("all.csv"));
    text << "y,id,word,items\n";
    for (std::int64_t r = 0; r < kRows; ++r) {
      text << r % 2 << ',' << r << ",w" << r % 10 << ',' << r << '|' << r + 1 << '\n';
    }
  }

  void part(std::int64_t begin, std::int64_t end, std::int64_t rows_per_group) {
    Maybe<std::int64_t> labels, ids;
    Maybe<std::string> words;
    Maybe<Maybe<std::int64_t>> items;
    for (std::int64_t r = begin; r < end; ++r) {
      labels.push_back(r % 2);
      ids.push_back(r);
      words.push_back("w" + std::to_string(r % 10));
      items.push_back(Maybe<std::int64_t>{r, r + 1});
    }
    const std::string path = path_of("part_" + std::to_string(paths_.size()) + ".parquet");
    ParquetTable({{"y", int64s(labels)},
                  {"id", int64s(ids)},
                  {"word", strings(words)},
                  {"items", lists_of<arrow::Int64Builder, std::int64_t>(items)}})
        .write(path, rows_per_group);
    paths_.push_back(path);
  }

  DataConfig config(bool of_text = false) const {
    DataConfig config = csv_config("", {"id"}, {"word"});
    config.schema.features.emplace_back() = {
        .name = "items", .type = IdType::kInt, .separator = "|"};
    config.train.path = of_text ? std::vector<std::string>{path_of("all.csv")} : paths_;
    return config;
  }

  std::vector<std::string> paths_;
};

TEST_F(ManyRowsTest, AreThoseOfTextWithAnyNumberOfThreads) {
  const auto expected = read_text(config(true)).rows;
  ASSERT_EQ(std::ssize(expected), kRows);
  for (const std::int64_t threads : {1, 4}) {
    EXPECT_EQ(read(config(), {.num_threads = threads}).rows, expected);
  }
}

TEST_F(ManyRowsTest, APassHasItsRowsAlone) {
  const auto compare = [&](const RowPass& pass) {
    const auto expected = read_text(config(true), pass).rows;
    EXPECT_EQ(read(config(), pass).rows, expected);
  };
  for (const std::int64_t row : {1, 2'099, 2'100, 4'999, 5'000, 5'001, 8'999}) {
    compare({.first_row = row});
    compare({.max_rows = row});
    compare({.first_row = row, .split = {.rank = 1, .world_size = 3, .rows_per_turn = 10}});
  }
  for (const std::int64_t turn : {1, 255, 256, 1'000, 3'000}) {
    for (const std::int64_t rank : {0, 2}) {
      compare({.split = {.rank = rank, .world_size = 3, .rows_per_turn = turn}, .num_threads = 2});
    }
  }
  DataConfig divided = config();
  divided.eval.fraction = 0.3;
  divided.eval.by = "hash";
  compare({.selection = RowSelection::of(divided, Role::kEval)});
}

TEST_F(ManyRowsTest, APartGoesByAColumnOfAnyType) {
  for (const std::string column : {"id", "word"}) {
    DataConfig text = config(true), parquet = config();
    for (DataConfig* each : {&text, &parquet}) {
      each->eval.fraction = 0.4;
      each->eval.by = column;
    }
    const RowPass pass{.selection = RowSelection::of(text, Role::kEval)};
    EXPECT_EQ(read(parquet, pass).rows, read_text(text, pass).rows);
  }
}

TEST_F(ManyRowsTest, FilesAreRecordedAndRowsCounted) {
  const Schema schema = resolve_schema(config());
  const FileList files = list_files(paths_);
  const auto records = std::make_shared<FileRecords>(files.files);
  const auto policy = std::make_shared<BadRowPolicy>(false, BadRowLimit(), [](const auto&) {});
  ParquetRows rows(schema, files, {.num_threads = 3}, policy, records);
  all_rows(rows);
  const std::vector<DataFile> seen = records->files();
  EXPECT_EQ(seen[0].num_rows, 5'000);
  EXPECT_EQ(seen[1].num_rows, 0);
  EXPECT_EQ(seen[2].first_row, 5'000);
  EXPECT_EQ(seen[2].num_rows, 4'000);
  EXPECT_TRUE(seen[1].was_opened());
  EXPECT_EQ(rows.stats().bytes, files.total_bytes);
  EXPECT_EQ(count_rows(Dataset(config())), kRows);
  EXPECT_EQ(estimate_rows(Dataset(config())), kRows);
}

TEST_F(ManyRowsTest, ResumedBatchesAreTheSame) {
  DataConfig config = ManyRowsTest::config();
  config.reader_threads = 2;
  const Schema schema = resolve_schema(config);
  ReadOptions options{.batch_size = 700};
  const auto open = [&] {
    return open_batches(Dataset(config), fixed_transforms(schema), Role::kTrain, options);
  };
  Batch batch, again;
  auto source = open();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(source->next(batch));
  options.start = source->position();
  EXPECT_EQ(options.start.next_row, 3'500);
  ASSERT_TRUE(source->next(batch));
  ASSERT_TRUE(open()->next(again));
  EXPECT_EQ(again.ids, batch.ids);
  EXPECT_EQ(again.labels, batch.labels);
}

TEST_F(ParquetRowsTest, BadRowsAreSkippedWithTheirReason) {
  ParquetTable({{"y", int64s({1, 2, 0, std::nullopt})}, {"n", strings({"1.5", "2", "x", "4"})}})
      .write(path_of("x.parquet"), 2);
  const ReadResult result = read(csv_config(path_of("x.parquet"), {"n"}, {}));
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_EQ(result.num_bad, 3);
  const std::string place = "bad row skipped: " + path_of("x.parquet");
  EXPECT_EQ(result.bad,
            (std::vector<std::string>{
                place + ": row 2: column 'y': expected 0 or 1 (`positive` or `threshold` say what "
                        "else means 1), got \"2\"",
                place + ": row 3: column 'n': expected a number, got \"x\"",
                place + ": row 4: column 'y': the label is missing"}));
}

TEST_F(ParquetRowsTest, ALabelThatIsANumberIsAsItIsStored) {
  const Maybe<double> doubles{-2.5, 0.1, 3.0};
  for (const auto& [values, wanted] :
       {std::pair{array_of<arrow::DoubleBuilder>(doubles), std::vector{-2.5F, 0.1F, 3.0F}},
        std::pair{array_of<arrow::FloatBuilder>(Maybe<float>{-2.5F, 0.1F, 1e30F}),
                  std::vector{-2.5F, 0.1F, 1e30F}},
        std::pair{int64s({-7, 16777217, 3}), std::vector{-7.0F, 16777216.0F, 3.0F}},
        std::pair{strings({"-2.5", "0.1", "3"}), std::vector{-2.5F, 0.1F, 3.0F}}}) {
    ParquetTable({{"y", values}, {"n", int64s({1, 2, 3})}}).write(path_of("x.parquet"));
    DataConfig config = csv_config(path_of("x.parquet"), {"n"}, {});
    config.schema.label.type = LabelType::kNumber;
    const ReadResult result = read(config);
    ASSERT_EQ(result.rows.size(), 3U);
    for (std::size_t r = 0; r < 3; ++r) EXPECT_EQ(result.rows[r].label, wanted[r]);
  }
}

TEST_F(ParquetRowsTest, ALabelThatIsNoNumberIsBad) {
  const double inf = std::numeric_limits<double>::infinity();
  const Maybe<double> labels{1.5, std::nan(""), inf, std::nullopt, 1e39, 2.5};
  ParquetTable({{"y", array_of<arrow::DoubleBuilder>(labels)}, {"n", int64s({1, 2, 3, 4, 5, 6})}})
      .write(path_of("x.parquet"));
  DataConfig config = csv_config(path_of("x.parquet"), {"n"}, {});
  config.schema.label.type = LabelType::kNumber;
  const ReadResult result = read(config);
  ASSERT_EQ(result.rows.size(), 2U);
  EXPECT_EQ(result.rows[0].label, 1.5F);
  EXPECT_EQ(result.rows[1].label, 2.5F);
  EXPECT_EQ(result.num_bad, 4);
}

TEST_F(ParquetRowsTest, NotANumberIsMissingAndInfinityIsBad) {
  const double inf = std::numeric_limits<double>::infinity();
  ParquetTable({{"y", int64s({1, 1})},
                {"n", array_of<arrow::DoubleBuilder>(Maybe<double>{std::nan(""), inf})}})
      .write(path_of("x.parquet"));
  const ReadResult result = read(csv_config(path_of("x.parquet"), {"n"}, {}));
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_EQ(result.rows[0].numeric[0], "-");
  EXPECT_EQ(result.num_bad, 1);
}

TEST_F(ParquetRowsTest, PredictionKeepsEveryRowAndTheColumnsAskedFor) {
  ParquetTable({{"n", strings({"1", "x"})}, {"who", int64s({7, 8})}}).write(path_of("x.parquet"));
  DataConfig config = csv_config(path_of("x.parquet"), {"n"}, {});
  config.eval.path = config.train.path;
  const auto batches = open_batches(Dataset(config), fixed_transforms(resolve_schema(config)),
                                    Role::kPredict, {.kept = {"who", "n"}});
  Batch batch;
  ASSERT_TRUE(batches->next(batch));
  ASSERT_EQ(batch.num_examples, 2);
  EXPECT_TRUE(std::isnan(batch.labels[1]));
  EXPECT_EQ(batch.kept[0].at(1), "8");
  EXPECT_EQ(batch.kept[1].at(0), "1");
}

TEST_F(ParquetRowsTest, ColumnsThatDoNotFitAreNamed) {
  const auto days = array_of<arrow::Date32Builder>(Maybe<int>{1});
  ParquetTable({{"y", int64s({1})},
                {"day", days},
                {"price", array_of<arrow::DoubleBuilder>(Maybe<double>{1.5})},
                {"items", lists_of<arrow::Int64Builder, std::int64_t>({{{1}}})}})
      .write(path_of("x.parquet"));
  const std::string path = path_of("x.parquet");
  EXPECT_EQ(error(csv_config(path, {"prize"}, {})),
            path + ": there is no column 'prize', which a number reads; did you mean 'price'?");
  EXPECT_EQ(error(csv_config(path, {"elevation"}, {})),
            path +
                ": there is no column 'elevation', which a number reads; the file has 4 columns, "
                "the first is 'y'");
  DataConfig old = csv_config(path, {}, {"price"});
  old.schema.value_rule = 1;
  EXPECT_EQ(error(old),
            path +
                ": column 'price' (DOUBLE) cannot be used as feature 'price', string: ids are "
                "integers or texts; convert it, or make it a number, or cut it into ranges with "
                "`buckets`");
  EXPECT_EQ(
      error(csv_config(path, {"day"}, {})),
      path +
          ": column 'day' (Date) cannot be used as number: integers, booleans, "
          "floating-point numbers, texts and lists of them are read (and for data.train.where, "
          "`part` and `since` dates and timestamps); convert it to one of these");
  EXPECT_EQ(error(csv_config(path, {"items"}, {})),
            path +
                ": column 'items' (list of INT64) cannot be used as number: a list is read as "
                "ids alone");
  DataConfig hex = csv_config(path, {}, {});
  hex.schema.features.emplace_back() = {.name = "y", .type = IdType::kHex};
  EXPECT_TRUE(contains(error(hex), "hex digits are texts; write `type: int`"));
}

TEST_F(ParquetRowsTest, ATimeThatHasNoYearIsABadRow) {
  constexpr std::int64_t kYear11476 = 300'000'000'000;
  const auto times = array_of<arrow::TimestampBuilder>(
      Maybe<std::int64_t>{3'600'000, kYear11476 * 1000, -3'600'000},
      arrow::TimestampBuilder(arrow::timestamp(arrow::TimeUnit::MILLI),
                              arrow::default_memory_pool()));
  for (const auto& kept : {std::vector<std::string>{}, std::vector<std::string>{"ts"}}) {
    ParquetTable({{"y", int64s({1, 0, 1})}, {"ts", times}}).write(path_of("x.parquet"));
    DataConfig config = csv_config(path_of("x.parquet"), {}, {"ts"});
    config.schema.features[0].part = DatePart::kHour;
    config.eval.path = config.train.path;
    const auto batches = open_batches(Dataset(config), fixed_transforms(resolve_schema(config)),
                                      Role::kEval, {.kept = kept});
    Batch batch;
    ASSERT_TRUE(batches->next(batch));
    EXPECT_EQ(batch.ids, (std::vector<std::uint64_t>{1, 23}));
    EXPECT_EQ(batches->stats().bad_rows, 1);
  }
}

TEST_F(ParquetRowsTest, DamagedFilesAreNamed) {
  const std::string whole = typed_parquet();
  const auto size = std::filesystem::file_size(whole);
  const auto refuse = [&](const std::string& path) {
    return error(csv_config(path, {"price"}, {}), ErrorCode::kInvalidData);
  };
  const std::string text = write("text.parquet", "y,price\n1,2\n");
  EXPECT_TRUE(contains(refuse(text), "'" + text + "' is neither a Parquet file nor an Arrow file"));
  const std::string cut = path_of("cut.parquet");
  std::filesystem::copy_file(whole, cut);
  std::filesystem::resize_file(cut, size - 20);
  EXPECT_TRUE(contains(refuse(cut), "'" + cut + "' is an incomplete Parquet file"));
  EXPECT_TRUE(contains(refuse(write("short.parquet", "PAR1")), "incomplete"));
  const std::string garbled = write("garbled.parquet", "PAR1????????????PAR1");
  EXPECT_TRUE(contains(refuse(garbled), "'" + garbled + "' cannot be read: "));
  std::fstream(whole, std::ios::in | std::ios::out | std::ios::binary).seekp(4)
      << std::string(40, '\xFF');
  EXPECT_EQ(read(csv_config(whole, {"price"}, {})).rows.size(), 4U);  // of other columns
  EXPECT_TRUE(contains(error(csv_config(whole, {"user"}, {}), ErrorCode::kInvalidData),
                       "'" + whole + "' cannot be read: "));
}

TEST_F(ParquetRowsTest, FilesOfOneFormatAlone) {
  const std::string parquet = typed_parquet(), csv = typed_csv();
  DataConfig config = typed_config(parquet);
  const auto count = [&] { return count_rows(Dataset(config)); };
  EXPECT_EQ(count(), 4);
  config.train.path.push_back(csv);
  EXPECT_TRUE(contains(error_of(count, ErrorCode::kInvalidConfig), "are of one format"));
  config.train.path = {parquet};
  config.format = DataFormat::kCsv;
  EXPECT_TRUE(contains(error_of(count), "write data.format: parquet"));
  const std::string other_name = path_of("log");
  std::filesystem::copy_file(parquet, other_name);
  config.train.path = {other_name};
  config.format = DataFormat::kParquet;
  EXPECT_EQ(count(), 4);
}

TEST_F(ParquetRowsTest, AFileWithoutRowsHasNone) {
  ParquetTable({{"y", int64s({})}, {"n", int64s({})}}).write(path_of("x.parquet"));
  EXPECT_TRUE(read(csv_config(path_of("x.parquet"), {"n"}, {})).rows.empty());
}

}  // namespace
}  // namespace satrap::data
