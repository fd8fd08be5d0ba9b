#include "satrap/data/inspect.h"

#include "satrap/core/log.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

class InspectTest : public FilesTest {
 protected:
  InspectTest() {
    set_log_level(LogLevel::kOff);
    config_ = csv_config(write("log.csv",
                               "y,n,id,bag\n"
                               "1,1.5,00000001,3:0.5|4\n"
                               "0,,000000ff,\n"
                               "x,,,\n"
                               "0,2.5,000000ff,5\n"),
                         {"n"}, {"id", "bag"});
    config_.schema.features[0].type = IdType::kHex;
    config_.schema.features[1].type = IdType::kInt;
    config_.schema.features[1].separator = "|";
    config_.schema.features[1].weight_separator = ":";
  }
  ~InspectTest() override { set_log_level(LogLevel::kInfo); }

  DataConfig config_;
};

TEST_F(InspectTest, HeadShowsRowsAsTheyWereUnderstood) {
  EXPECT_EQ(describe_head(Dataset(config_), Role::kTrain, 2),
            "row 0: label 1\n"
            "  n         1.5\n"
            "  id        00000001\n"
            "  bag       3:0.5 4:1\n"
            "row 1: label 0\n"
            "  n         -\n"
            "  id        000000ff\n"
            "  bag       -\n");
  EXPECT_EQ(describe_head(Dataset(config_), Role::kTrain, 0), "");
}

TEST_F(InspectTest, StatsSummariseEveryColumn) {
  EXPECT_EQ(describe_stats(Dataset(config_), Role::kTrain, 0),
            "3 rows, 33.3333% positive, 1 bad rows\n"
            "\n"
            "number     missing         min        mean      stddev         max\n"
            "n           33.33%         1.5           2         0.5         2.5\n"
            "\n"
            "feature      empty   ids/row    distinct  most frequent\n"
            "id           0.00%      1.00           2  000000ff 66.7%, 00000001 33.3%\n"
            "bag         33.33%      1.00           3  3 33.3%, 4 33.3%, 5 33.3%\n");
}

TEST_F(InspectTest, LabelThatIsMissingEverywhereHasNoShare) {
  DataConfig config =
      csv_config(write("labels.csv", "click,buy,id\n1,,a\n0,,b\n0,,a\n"), {}, {"id"});
  config.schema.label = {};
  config.schema.labels.resize(2);
  config.schema.labels[0].source.column = "click";
  config.schema.labels[1].source.column = "buy";
  const std::string stats = describe_stats(Dataset(config), Role::kTrain, 0);
  EXPECT_TRUE(stats.starts_with("3 rows, click 33.3333%, buy - positive, 0 bad rows\n")) << stats;
}

/// Strings, and a number with transforms, cut into ranges.
DataConfig of_text(const std::string& path) {
  DataConfig config = csv_config(path, {"n"}, {"city"});
  config.schema.numeric[0].transform = Transform::kZscore;
  config.schema.features.push_back(
      {.name = "range", .column = "n", .buckets = {.boundaries = {2}}});
  return config;
}

TEST_F(InspectTest, HeadShowsTextBesideHashesAndNumbersAfterTheirTransforms) {
  const DataConfig config = of_text(write("text.csv", "y,n,city\n1,1,Oslo\n0,3,\n1,,Rome\n"));
  EXPECT_EQ(describe_head(Dataset(config), Role::kTrain, 3),
            "row 0: label 1\n"
            "  n         1 -> -1\n"
            "  range     range 0\n"
            "  city      Oslo (f4d72f358f6a0af3)\n"
            "row 1: label 0\n"
            "  n         3 -> 1\n"
            "  range     range 1\n"
            "  city      -\n"
            "row 2: label 1\n"
            "  n         - -> 0\n"
            "  range     -\n"
            "  city      Rome (2d10add38fdde86b)\n");
}

TEST_F(InspectTest, StatsShowTransformedNumbersAndTexts) {
  const DataConfig config =
      of_text(write("text.csv", "y,n,city\n1,1,Oslo\n0,3,Oslo\n1,,Rome\n0,,\n"));
  const std::string stats = describe_stats(Dataset(config), Role::kTrain, 0);
  EXPECT_TRUE(contains(stats,
                       "\nn            50.00%           1           2           1           3\n"
                       "-> zscore    50.00%          -1           0           1           1\n"))
      << stats;
  EXPECT_TRUE(contains(stats, "  Oslo (")) << stats;
}

TEST_F(InspectTest, TimesAreShownBesideWhatIsMadeOfThem) {
  DataConfig config = csv_config(
      write("times.csv", "y,ts,born,s\n1,2026-11-20 21:05:00.5,2026-11-19,a\n0,,2026-11-18,b\n"),
      {"age"}, {"s", "hour", "s_hour"});
  config.schema.numeric[0].column = "ts";
  config.schema.numeric[0].since = "born";
  config.schema.numeric[0].transform = Transform::kLog1p;
  config.schema.features[1].column = "ts";
  config.schema.features[1].part = DatePart::kHour;
  config.schema.features[2].cross = {"s", "hour"};
  EXPECT_EQ(describe_head(Dataset(config), Role::kTrain, 2),
            "row 0: label 1\n"
            "  ts        2026-11-20T21:05:00.500Z\n"
            "  born      2026-11-19T00:00:00Z\n"
            "  age       1.8784780092592592 -> 1.05726\n"
            "  hour      21\n"
            "  s_hour    b2c1b176e69f07e4\n"
            "  s         a (e6c632b61e964e1f)\n"
            "row 1: label 0\n"
            "  ts        -\n"
            "  born      2026-11-18T00:00:00Z\n"
            "  age       - -> 0\n"
            "  hour      -\n"
            "  s_hour    -\n"
            "  s         b (575a0b1c44d8843f)\n");
  const std::string stats = describe_stats(Dataset(config), Role::kTrain, 0);
  EXPECT_TRUE(
      contains(stats, "\nborn         0.00%  2026-11-18  2026-11-18              2026-11-19\n"))
      << stats;
  EXPECT_TRUE(
      contains(stats, "\nage         50.00%     1.87848     1.87848           0     1.87848\n"))
      << stats;
}

TEST_F(InspectTest, WithoutTrainingDataThereAreNoTransforms) {
  DataConfig config = of_text(path_of("none.csv"));
  config.eval.path = {write("eval.csv", "y,n,city\n1,1,Oslo\n")};
  const std::string head = describe_head(Dataset(config), Role::kEval, 1);
  EXPECT_TRUE(contains(head, "  n         1\n")) << head;
}

TEST_F(InspectTest, StatsMayStopEarly) {
  EXPECT_TRUE(contains(describe_stats(Dataset(config_), Role::kTrain, 1), "1 rows"));
}

TEST_F(InspectTest, ManyDistinctIdsAreEstimated) {
  std::string text = "y,f\n";
  for (int i = 0; i < 100'000; ++i) text += "1," + std::to_string(i) + "\n";
  const DataConfig config = csv_config(write("many.csv", text), {}, {"f"});
  const std::string stats = describe_stats(Dataset(config), Role::kTrain, 0);
  const std::size_t at = stats.find('~');
  ASSERT_NE(at, std::string::npos) << stats;
  EXPECT_NEAR(std::stod(stats.substr(at + 1)), 100'000, 3'000);
}

}  // namespace
}  // namespace satrap::data
