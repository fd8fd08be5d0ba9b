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
    config_.schema.features[0].type = "hex";
    config_.schema.features[1].type = "int";
    config_.schema.features[1].separator = "|";
    config_.schema.features[1].weight_separator = ":";
  }
  ~InspectTest() override { set_log_level(LogLevel::kInfo); }

  DataConfig config_;
};

TEST_F(InspectTest, HeadShowsRowsAsTheyWereUnderstood) {
  EXPECT_EQ(describe_head(config_, resolve_schema(config_), Role::kTrain, 2),
            "row 0: label 1\n"
            "  n         1.5\n"
            "  id        00000001\n"
            "  bag       3:0.5 4:1\n"
            "row 1: label 0\n"
            "  n         -\n"
            "  id        000000ff\n"
            "  bag       -\n");
  EXPECT_EQ(describe_head(config_, resolve_schema(config_), Role::kTrain, 0), "");
}

TEST_F(InspectTest, StatsSummariseEveryColumn) {
  EXPECT_EQ(describe_stats(config_, resolve_schema(config_), Role::kTrain, 0),
            "3 rows, 33.3333% positive, 1 bad rows\n"
            "\n"
            "number     missing         min        mean      stddev         max\n"
            "n           33.33%         1.5           2         0.5         2.5\n"
            "\n"
            "feature      empty   ids/row    distinct  most frequent\n"
            "id           0.00%      1.00           2  000000ff 66.7%, 00000001 33.3%\n"
            "bag         33.33%      1.00           3  3 33.3%, 4 33.3%, 5 33.3%\n");
}

TEST_F(InspectTest, StatsMayStopEarly) {
  EXPECT_TRUE(
      contains(describe_stats(config_, resolve_schema(config_), Role::kTrain, 1), "1 rows"));
}

TEST_F(InspectTest, ManyDistinctIdsAreEstimated) {
  std::string text = "y,f\n";
  for (int i = 0; i < 100'000; ++i) text += "1," + std::to_string(i) + "\n";
  const DataConfig config = csv_config(write("many.csv", text), {}, {"f"});
  const std::string stats = describe_stats(config, resolve_schema(config), Role::kTrain, 0);
  const std::size_t at = stats.find('~');
  ASSERT_NE(at, std::string::npos) << stats;
  EXPECT_NEAR(std::stod(stats.substr(at + 1)), 100'000, 3'000);
}

}  // namespace
}  // namespace satrap::data
