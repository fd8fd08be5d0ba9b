// Real files: Adult, which is part of the project, and samples that may be next to the checkout in
// ../shared/data but cannot be part of it because of their terms. Tests of missing samples are
// skipped.

#include <filesystem>

#include "satrap/data/open_rows.h"
#include "satrap/data/validate.h"
#include "tests/data/parsed_rows.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

std::string adult(const std::string& name) {
  return std::string(SATRAP_SOURCE_DIR) + "/datasets/adult/" + name;
}

struct Totals {
  std::int64_t rows = 0;
  double positive = 0;
  std::int64_t ids = 0;
  std::int64_t missing_numbers = 0;
};

Totals totals_of(const DataConfig& config, Role role = Role::kTrain) {
  const auto rows = open_rows(Dataset(config), role, {});
  Totals totals;
  RowBlock block;
  while (rows->next(block)) {
    totals.rows += block.num_rows;
    for (const float label : block.labels) totals.positive += static_cast<double>(label);
    for (const RowBlock::Bags& bags : block.bags) totals.ids += bags.offsets.back();
    for (const std::vector<double>& column : block.numeric) {
      for (const double value : column) totals.missing_numbers += std::isnan(value) ? 1 : 0;
    }
  }
  EXPECT_EQ(rows->stats().bad_rows, 0);
  return totals;
}

TEST(Samples, AdultIsReadWhole) {
  DataConfig config;
  config.schema_name = adult("schema.yaml");
  config.train.path = {adult("adult.data")};
  config.eval.path = {adult("adult.test")};
  inline_schema_file(config);
  config.on_bad_row = OnBadRow::kStop;
  validate(config);
  const Totals train = totals_of(config);
  EXPECT_EQ(train.rows, 32'561);
  EXPECT_EQ(train.positive, 7'841);
  // Eight features; `?` occurs 4,262 times in workclass, occupation and native_country.
  EXPECT_EQ(train.ids, 8 * 32'561 - 4'262);
  EXPECT_EQ(train.missing_numbers, 0);
  const Totals test = totals_of(config, Role::kEval);
  EXPECT_EQ(test.rows, 16'281);
  EXPECT_EQ(test.positive, 3'846);
}

class SharedSamples : public testing::Test {
 protected:
  /// Path of a sample; skips the test if it is missing.
  std::string sample(const std::string& name) {
    const std::string path = std::string(SATRAP_SOURCE_DIR) + "/../shared/data/" + name;
    exists_ = std::filesystem::exists(path);
    return path;
  }
  bool exists_ = false;
};

#define SATRAP_NEEDS(path) \
  if (!exists_) GTEST_SKIP() << (path) << " is not there"

TEST_F(SharedSamples, CriteoKagglePlainAndGzip) {
  DataConfig config;
  config.schema_name = "criteo";
  config.on_bad_row = OnBadRow::kStop;
  for (const char* name : {"criteo_kaggle/first10k.tsv", "criteo_kaggle/first10k.tsv.gz"}) {
    config.train.path = {sample(name)};
    SATRAP_NEEDS(name);
    const Totals totals = totals_of(config);
    EXPECT_EQ(totals.rows, 10'000);
    EXPECT_NEAR(totals.positive / 10'000, 0.218, 0.0005);
    EXPECT_EQ(totals.missing_numbers, 27'181);
  }
}

TEST_F(SharedSamples, CriteoKaggleCsvHoldsTheSameRows) {
  DataConfig tsv;
  tsv.schema_name = "criteo";
  tsv.train.path = {sample("criteo_kaggle/first10k.tsv")};
  tsv.train.max_rows = 1999;
  SATRAP_NEEDS("criteo_kaggle");
  DataConfig csv;
  csv.schema = criteo_schema();
  csv.schema.delimiter = ",";
  csv.schema.header = true;
  csv.schema.columns = {};
  csv.schema.label.column = "Label";
  csv.train.path = {sample("criteo_kaggle/tiny2k.csv")};
  const ReadResult rows = read_text(csv);
  ReadResult expected = read_text(tsv, {.max_rows = 1999});
  EXPECT_EQ(rows.num_bad, 0);
  EXPECT_TRUE(rows.rows == expected.rows);
}

TEST_F(SharedSamples, CriteoKaggleWithoutLabelsIsRefusedRowByRow) {
  DataConfig config;
  config.schema_name = "criteo";
  config.train.path = {sample("criteo_kaggle/unlabelled10k.tsv")};
  SATRAP_NEEDS("criteo_kaggle");
  const ReadResult result = read_text(config);
  EXPECT_EQ(result.num_bad, 10'000);
  EXPECT_TRUE(contains(result.bad[0], ":1: expected 40 columns, got 39")) << result.bad[0];
}

TEST_F(SharedSamples, AvazuHasIdsBeyondSixtyThreeBits) {
  DataConfig config = csv_config(sample("avazu/first10k.csv"), {}, {"id", "site_id", "device_ip"});
  SATRAP_NEEDS("avazu");
  config.on_bad_row = OnBadRow::kStop;
  config.schema.label.column = "click";
  config.schema.features[0].type = IdType::kInt;
  config.schema.features[1].type = IdType::kHex;
  config.schema.features[2].type = IdType::kHex;
  config.schema.features.emplace_back().name = "C14..C21";
  config.schema.features.back().type = IdType::kInt;
  const Totals totals = totals_of(config);
  EXPECT_EQ(totals.rows, 9'999);
  EXPECT_NEAR(totals.positive / 9'999, 0.171, 0.005);
  EXPECT_EQ(totals.ids, 9'999 * 11);
}

TEST_F(SharedSamples, AlimamaHasBags) {
  DataConfig config = csv_config(sample("ijcai18/train.tiny.csv"), {}, {"C2", "C5"});
  SATRAP_NEEDS("ijcai18");
  config.on_bad_row = OnBadRow::kStop;
  config.schema.label.column = "Label";
  config.schema.features[0].separator = ";";
  const Totals totals = totals_of(config);
  EXPECT_EQ(totals.rows, 20'000);
  EXPECT_GT(totals.ids, 40'000);
}

TEST_F(SharedSamples, TaobaoHasNumberedColumns) {
  DataConfig config = csv_config(sample("taobao_dmr/alimama_sampled_train.txt"), {}, {});
  SATRAP_NEEDS("taobao_dmr");
  config.on_bad_row = OnBadRow::kStop;
  config.schema.header = false;
  config.schema.missing = {"NULL"};
  config.schema.label.column = "266";
  FeatureConfig& feature = config.schema.features.emplace_back();
  feature.name = "f250..f258";
  feature.column = "250..258";
  feature.type = IdType::kInt;
  const Totals totals = totals_of(config);
  EXPECT_EQ(totals.rows, 500);
  EXPECT_EQ(totals.positive, 210);
}

TEST_F(SharedSamples, MovieRatingsHaveAThreshold) {
  DataConfig config = csv_config(sample("movielens_small/ratings.csv"), {}, {"userId", "movieId"});
  SATRAP_NEEDS("movielens_small");
  config.on_bad_row = OnBadRow::kStop;
  config.schema.label = {.column = "rating", .positive = {}, .negative = {}, .threshold = {4}};
  const Totals totals = totals_of(config);
  EXPECT_EQ(totals.rows, 100'836);
  EXPECT_EQ(totals.ids, 2 * 100'836);
}

#undef SATRAP_NEEDS

}  // namespace
}  // namespace satrap::data
