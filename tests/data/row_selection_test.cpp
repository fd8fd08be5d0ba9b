#include "src/data/rows/row_selection.h"

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/log.h"
#include "satrap/data/columns.h"
#include "satrap/data/common_files.h"
#include "satrap/data/open_rows.h"
#include "satrap/data/validate.h"
#include "tests/data/parsed_rows.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

class RowSelectionTest : public FilesTest {
 protected:
  static constexpr std::int64_t kRows = 3'000;

  RowSelectionTest() { set_log_level(LogLevel::kOff); }
  ~RowSelectionTest() override { set_log_level(LogLevel::kInfo); }

  static std::string day_of(std::int64_t row) {
    return "2026-11-" + std::to_string(10 + row / 300);  // 10 ... 19, in order
  }
  static std::string country_of(std::int64_t row) {
    return row % 7 == 0 ? "" : row % 3 == 0 ? "US" : row % 3 == 1 ? "DE" : "FR";
  }

  /// The feature is the number of the row; `day` and `country` are no inputs.
  std::string csv() const {
    std::string text = "y,id,day,country\n";
    for (std::int64_t r = 0; r < kRows; ++r) {
      text += concat(r % 2, ',', r, ',', day_of(r), ',', country_of(r), '\n');
    }
    return write("log.csv", text);
  }

  static DataConfig config_of(const std::string& path) {
    DataConfig config = csv_config(path, {}, {"id"});
    config.schema.features[0].type = IdType::kInt;
    config.batch_size = 64;
    return config;
  }

  static std::vector<std::uint64_t> ids_of(const DataConfig& config,
                                           Role role = Role::kTrain,
                                           const ReadOptions& options = {}) {
    validate(config);
    const Schema schema = resolve_schema(config);
    const auto source = open_batches(Dataset(config), fixed_transforms(schema), role, options);
    std::vector<std::uint64_t> ids;
    Batch batch;
    while (source->next(batch)) ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
    return ids;
  }

  template <class Meets>
  static std::vector<std::uint64_t> rows_that(const Meets& meets) {
    std::vector<std::uint64_t> rows;
    for (std::int64_t r = 0; r < kRows; ++r) {
      if (meets(r)) rows.push_back(static_cast<std::uint64_t>(r));
    }
    return rows;
  }

  static std::string refusal(const DataConfig& config) {
    return error_of([&] { validate(config); }, ErrorCode::kInvalidConfig);
  }
};

TEST_F(RowSelectionTest, RowsAreThoseForWhichItHolds) {
  DataConfig config = config_of(csv());
  config.train.where = "day >= 2026-11-12 and day < 2026-11-15 and country in (US, DE)";
  EXPECT_EQ(ids_of(config), rows_that([](auto r) {
              const std::string country = country_of(r);
              return r >= 600 && r < 1500 && (country == "US" || country == "DE");
            }));
  config.train.where = "country = '' and id > 2990";
  EXPECT_EQ(ids_of(config), (std::vector<std::uint64_t>{2996}));
  config.train.where = "country != ''";
  EXPECT_EQ(ids_of(config), rows_that([](auto r) { return r % 7 != 0; }));
}

TEST_F(RowSelectionTest, OneFileIsDividedByTime) {
  DataConfig config = config_of(csv());
  config.train.where = "day < 2026-11-18";
  config.eval.path = config.train.path;
  config.eval.where = "day >= 2026-11-18";
  EXPECT_EQ(ids_of(config), rows_that([](auto r) { return r < 2400; }));
  EXPECT_EQ(ids_of(config, Role::kEval), rows_that([](auto r) { return r >= 2400; }));
  EXPECT_TRUE(common_files(Dataset(config)).empty());
  config.eval.where = "";
  EXPECT_EQ(common_files(Dataset(config)).size(), 1U) << "they are among them";
  config.eval.where = config.train.where;
  EXPECT_EQ(common_files(Dataset(config)).size(), 1U);
}

TEST_F(RowSelectionTest, APartIsOfTheRowsForWhichItHolds) {
  DataConfig config = config_of(csv());
  config.train.where = "country = US";
  for (const std::string by : {"hash", "tail", "day"}) {
    config.eval.fraction = 0.3;
    config.eval.by = by;
    std::vector<std::uint64_t> all = ids_of(config);
    const std::vector<std::uint64_t> evaluated = ids_of(config, Role::kEval);
    EXPECT_GT(evaluated.size(), 100U) << by;
    EXPECT_GT(all.size(), 100U) << by;
    all.insert(all.end(), evaluated.begin(), evaluated.end());
    std::ranges::sort(all);
    EXPECT_EQ(all, rows_that([](auto r) { return country_of(r) == "US"; })) << by;
  }
}

TEST_F(RowSelectionTest, FirstRowsAreThoseOfTheFile) {
  DataConfig config = config_of(csv());
  config.train.where = "country = US";
  config.train.max_rows = 100;
  EXPECT_EQ(ids_of(config), rows_that([](auto r) { return r < 100 && country_of(r) == "US"; }));
}

TEST_F(RowSelectionTest, RanksShareThemAndAResumptionContinues) {
  DataConfig config = config_of(csv());
  config.train.where = "country = US and day > 2026-11-11";
  const auto expected = ids_of(config);
  std::multiset<std::uint64_t> shared;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    for (const std::uint64_t id : ids_of(config, Role::kTrain, {.rank = rank, .world_size = 3})) {
      shared.insert(id);
    }
  }
  EXPECT_TRUE(std::ranges::equal(shared, expected));

  for (const std::int64_t shuffle_rows : {0, 500}) {
    config.shuffle_rows = shuffle_rows;
    const auto all = ids_of(config);
    const Schema schema = resolve_schema(config);
    const auto source = open_batches(Dataset(config), fixed_transforms(schema), Role::kTrain, {});
    Batch batch;
    for (int b = 0; b < 5; ++b) ASSERT_TRUE(source->next(batch));
    const auto rest = ids_of(config, Role::kTrain, {.start = source->position()});
    EXPECT_EQ(rest, std::vector(all.begin() + 5 * 64, all.end())) << shuffle_rows;
  }
}

TEST_F(RowSelectionTest, BadRowsAreStillReported) {
  DataConfig config = config_of(write("bad.csv",
                                      "y,id,day,country\n"
                                      "1,0,5,US\n"
                                      "1,x,5,US\n"  // bad, and wanted
                                      "1,x,6,US\n"  // not wanted: nobody reads its fields
                                      "1,3\n"       // has no day
                                      "\n"
                                      "1,5,\"5\",US\n"
                                      "1,\"4,5,US\n"));  // nor has this
  config.train.where = "day = 5";
  const ReadResult result =
      read_text(config, {.selection = RowSelection::of(config, Role::kTrain)});
  ASSERT_EQ(result.rows.size(), 2U);
  EXPECT_EQ(result.rows[0].number, 0);
  EXPECT_EQ(result.rows[1].number, 5);
  EXPECT_EQ(result.num_bad, 3);
}

TEST_F(RowSelectionTest, JsonAndLibsvmHaveTheRowsOfTheSameCsv) {
  DataConfig config = config_of(csv());
  std::string json, svm;
  for (std::int64_t r = 0; r < kRows; ++r) {
    json += concat("{\"y\": ", r % 2, ", \"id\": ", r, ", \"day\": \"", day_of(r), '"');
    if (r % 2 == 0) json += concat(", \"country\": \"", country_of(r), '"');
    if (r % 2 == 1 && !country_of(r).empty())
      json += concat(", \"country\": [\"", country_of(r), "\"]");
    json += "}\n";
    svm += concat(r % 2, " 1:", r, " 2:", r / 300, '\n');
  }
  DataConfig lines = config_of(write("log.jsonl", json));
  for (const std::string where :
       {"country = US", "country != US", "country = ''", "day >= 2026-11-17 and id != 2999"}) {
    config.train.where = lines.train.where = where;
    EXPECT_EQ(ids_of(lines), ids_of(config)) << where;
  }
  DataConfig sparse = csv_config(write("log.svm", svm), {"1"}, {"features"});
  sparse.schema.label.column = "label";
  sparse.schema.features[0].type = IdType::kInt;
  sparse.schema.features[0].weight_separator = ":";
  sparse.train.where = "2 >= 7 and 2 < 9";
  validate(sparse);
  const auto rows = all_rows(*open_rows(Dataset(sparse), Role::kTrain, {}));
  ASSERT_EQ(rows.size(), 600U);
  EXPECT_EQ(rows[0].number, 2100);
}

TEST_F(RowSelectionTest, AKeyThatNoRowHasIsMissing) {
  DataConfig lines = config_of(write("x.jsonl", "{\"y\": 1, \"id\": 1}\n{\"y\": 1, \"id\": 2}\n"));
  lines.train.where = "bot != 1";
  EXPECT_EQ(ids_of(lines).size(), 2U);
  lines.train.where = "bot = 1";
  EXPECT_TRUE(
      contains(error_of([&] { ids_of(lines); }), "that meet data.train.where: bot = 1 are"));
}

TEST_F(RowSelectionTest, ProgressAndTheShareOfBadRowsCountWhatIsLeftOut) {
  std::string text = "y,id,day\n";
  for (int r = 0; r < 30'000; ++r)
    text += r % 20 == 0 ? "1\n" : concat("1,", r, ',', r % 100, '\n');
  DataConfig config = config_of(write("few.csv", text));  // 5 % have no day
  config.max_bad_rows = "10%";
  config.train.where = "day >= 98";
  const Schema schema = resolve_schema(config);
  config.cache.folder = path_of("cache");
  for (const OpenDeliveries& elsewhere : {OpenDeliveries(), OpenDeliveries(open_deliveries)}) {
    if (elsewhere) config.cache.folder = "";
    for (int pass = 0; pass < 2; ++pass) {
      const auto source = open_batches(Dataset(config), fixed_transforms(schema), Role::kTrain,
                                       {.open_deliveries = elsewhere});
      Batch batch;
      std::int64_t num_read = 0;
      while (source->next(batch)) num_read += batch.num_examples;
      EXPECT_EQ(num_read, 600);
      EXPECT_EQ(source->stats().bad_rows, 1'500);
      EXPECT_NEAR(source->stats().epoch_rows, 600, 30);
    }
  }
  config.eval.fraction = 0.25;
  config.eval.by = "hash";
  const auto source = open_batches(Dataset(config), fixed_transforms(schema), Role::kTrain, {});
  Batch batch;
  while (source->next(batch)) continue;
  EXPECT_NEAR(source->stats().epoch_rows, 450, 25);
}

TEST_F(RowSelectionTest, ACacheIsOfItsRowsAlone) {
  DataConfig config = config_of(csv());
  config.cache.folder = path_of("cache");
  const auto all = ids_of(config);
  EXPECT_EQ(std::ssize(all), kRows);
  config.train.where = "country = US";
  const auto some = ids_of(config);
  EXPECT_EQ(some, rows_that([](auto r) { return country_of(r) == "US"; }));
  EXPECT_EQ(ids_of(config), some);
  config.train.where = "country = DE";
  EXPECT_EQ(ids_of(config), rows_that([](auto r) { return country_of(r) == "DE"; }));
  config.train.where = "";
  EXPECT_EQ(ids_of(config), all);
}

TEST_F(RowSelectionTest, OtherProcessesReadTheSame) {
  DataConfig config = config_of(csv());
  config.train.where = "country = US";
  EXPECT_EQ(ids_of(config, Role::kTrain, {.open_deliveries = open_deliveries}), ids_of(config));
}

TEST_F(RowSelectionTest, NumbersAreFittedToThem) {
  DataConfig config = csv_config(write("n.csv", "y,n,d\n1,1,a\n0,3,a\n1,100,b\n"), {"n"}, {});
  config.schema.numeric[0].transform = Transform::kZscore;
  config.train.where = "d = a";
  EXPECT_EQ(fit_transforms(Dataset(config), 1).scales[0].mean, 2.0);
}

TEST_F(RowSelectionTest, ItsColumnsNeedNotBeInTheFilesOfAnotherRole) {
  DataConfig config = config_of(csv());
  config.train.where = "country = US";
  config.eval.path = {write("eval.csv", "y,id\n1,7\n")};
  EXPECT_EQ(ids_of(config, Role::kEval), std::vector<std::uint64_t>{7});
  EXPECT_TRUE(contains(describe_columns(Dataset(config), Role::kTrain),
                       "country  selects rows (data.train.where)"));
  EXPECT_TRUE(contains(describe_columns(Dataset(config), Role::kTrain), "day      not read"));
}

TEST_F(RowSelectionTest, WhatIsWrongIsNamed) {
  DataConfig config = config_of(csv());
  config.train.where = "day > ";
  EXPECT_TRUE(contains(refusal(config), "data.train.where: expected a value, got the end"));
  config.train.where = "dya > 2026-11-15";
  EXPECT_TRUE(contains(error_of([&] { ids_of(config); }, ErrorCode::kInvalidConfig),
                       "no column 'dya', which data.train.where reads; did you mean 'day'?"));
  config.train.where = "day > 2027-01-01";
  EXPECT_TRUE(
      contains(error_of([&] { ids_of(config); }), "no row of the training data can be used"));
  EXPECT_TRUE(contains(error_of([&] { ids_of(config); }), "data.train.where: day > 2027-01-01"));
  config.train.where = "";
  config.eval.where = "day > 1";
  EXPECT_TRUE(contains(refusal(config), "data.eval.where: has no effect without data.eval.path"));
  config.eval.fraction = 0.1;
  EXPECT_TRUE(contains(refusal(config), "data.eval.where: has no effect on a fraction"));
  DataConfig generated;
  generated.format = DataFormat::kSynthetic;
  generated.synthetic.rows = 10;
  generated.train.where = "C1 = 1";
  EXPECT_TRUE(contains(refusal(generated), "data.train.where: has no effect with format synth"));
}

}  // namespace
}  // namespace satrap::data
