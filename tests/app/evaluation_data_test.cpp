#include "src/app/evaluation_data.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "satrap/core/config.h"

namespace satrap::app {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Json = nlohmann::ordered_json;

Json evaluated(const std::string& yaml, std::int64_t examples = 0, std::int64_t positives = 0) {
  Json config = Json::array();
  for (const ConfigValue& value : config_values(yaml, "test")) {
    config.push_back({value.path, value.text});
  }
  Json run = {{"config", config}, {"evaluations", Json::array()}, {"summary", nullptr}};
  if (examples > 0) {
    run["evaluations"].push_back(
        {{"step", 5},
         {"eval", {{"examples", examples}, {"auc", 0.5}}},
         {"reliability", {{{"examples", {examples}}, {"positives", {positives}}}}}});
  }
  return run;
}

std::vector<std::string> difference(const Json& a, const Json& b) {
  const auto groups = comparable_runs({a, b});
  return groups.size() == 1 ? std::vector<std::string>{} : groups.at(1).differences;
}

const std::string kFile = "data: {train: {path: [a.csv]}, eval: {path: [v.csv], where: ''}}\n";
const std::string kPart = "data: {train: {path: [a.csv]}, eval: {fraction: 0.2, by: hash}}\n";

TEST(ComparableRuns, AreThoseOfOneEvaluationFileWhateverTheyWereTrainedOn) {
  EXPECT_THAT(difference(evaluated(kFile, 10, 2),
                         evaluated("data: {train: {path: [b.csv]}, eval: {path: [v.csv]}}", 10, 2)),
              IsEmpty());
  EXPECT_THAT(difference(evaluated(kFile, 10, 2),
                         evaluated("data: {train: {path: [a.csv]}, eval: {path: [w.csv]}}", 10, 2)),
              ElementsAre("data.eval.path is [w.csv], not [v.csv]"));
}

TEST(ComparableRuns, APartOfTheTrainingFilesIsAnotherOfOtherFiles) {
  EXPECT_THAT(difference(evaluated(kPart), evaluated(kPart)), IsEmpty());
  EXPECT_THAT(
      difference(evaluated(kPart),
                 evaluated("data: {train: {path: [b.csv]}, eval: {fraction: 0.2, by: hash}}")),
      ElementsAre("data.train.path is [b.csv], not [a.csv]"));
  EXPECT_THAT(
      difference(evaluated(kPart),
                 evaluated("data: {train: {path: [a.csv]}, eval: {fraction: 0.2, by: day}}")),
      ElementsAre("data.eval.by is day, not hash"));
}

TEST(ComparableRuns, AnotherLabelOrFilterIsOtherData) {
  EXPECT_THAT(difference(evaluated("data: {schema: {label: {column: click}}}"),
                         evaluated("data: {schema: {label: {column: buy}}}")),
              ElementsAre("data.schema.label.column is buy, not click"));
  EXPECT_THAT(difference(evaluated("data: {eval: {path: [v.csv], where: ''}}"),
                         evaluated("data: {eval: {path: [v.csv], where: day > 3}}")),
              ElementsAre("data.eval.where is day > 3, not none"));
  EXPECT_THAT(difference(evaluated("data: {schema: {label: {column: click}}}"),
                         evaluated("data: {schema: {label: {column: label}, labels: [{name: x, "
                                   "column: buy}]}}")),
              ElementsAre("data.schema.label.column is none, not click",
                          "data.schema.labels.x.column is buy, not none"));
  EXPECT_THAT(difference(evaluated("data: {schema: {labels: [{name: a, weight: 1}]}}"),
                         evaluated("data: {schema: {labels: [{name: a, weight: 2}]}}")),
              IsEmpty());
}

TEST(ComparableRuns, OtherRowsInAFileOfTheSameNameAreSeenByTheirCounts) {
  EXPECT_THAT(difference(evaluated(kFile, 1000, 20), evaluated(kFile, 1200, 20)),
              ElementsAre("1,200 evaluation examples, not 1,000"));
  EXPECT_THAT(difference(evaluated(kFile, 1000, 20), evaluated(kFile, 1000, 21)),
              ElementsAre("21 positive evaluation examples, not 20"));
}

TEST(ComparableRuns, APathIsTheSameAsWrittenOrFromItsFolder) {
  EXPECT_THAT(difference(evaluated("folder: /a\n" + kFile), evaluated("folder: /moved\n" + kFile)),
              IsEmpty());
  EXPECT_THAT(difference(evaluated("folder: /a\n" + kFile),
                         evaluated("folder: /a/jobs\ndata: {eval: {path: [../v.csv]}}")),
              IsEmpty());
}

TEST(ComparableRuns, WhatIsNotKnownDiffersFromNothing) {
  EXPECT_THAT(difference(evaluated(kFile, 1000, 20), evaluated("")), IsEmpty());
  EXPECT_THAT(difference(evaluated(kFile), evaluated(kFile, 1000, 20)), IsEmpty());
}

TEST(ComparableRuns, AreInTheOrderOfTheirFirstOnes) {
  const auto groups =
      comparable_runs({evaluated(kPart), evaluated(kFile), evaluated(kPart), evaluated(kFile)});
  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_THAT(groups[0].runs, ElementsAre(0, 2));
  EXPECT_THAT(groups[1].runs, ElementsAre(1, 3));
  EXPECT_THAT(groups[0].differences, IsEmpty());
  EXPECT_THAT(comparable_runs({}), IsEmpty());
}

TEST(DescribeData, NamesFilesAndParts) {
  EXPECT_EQ(describe_evaluation_data(evaluated(kFile)), "v.csv");
  EXPECT_EQ(describe_training_data(evaluated(kFile)), "a.csv");
  EXPECT_EQ(describe_evaluation_data(evaluated(kPart)), "20 % of a.csv, chosen by hash");
  EXPECT_EQ(describe_evaluation_data(
                evaluated("data: {train: {path: [/x/d0.csv, /x/d1.csv], where: a > 1},"
                          " eval: {fraction: 0.1, by: tail}}")),
            "10 % of d0.csv and 1 more, its last rows where a > 1");
  EXPECT_EQ(describe_training_data(evaluated("data: {format: synthetic}")), "synthetic data");
  EXPECT_EQ(describe_training_data(evaluated("")), "");
}

}  // namespace
}  // namespace satrap::app
