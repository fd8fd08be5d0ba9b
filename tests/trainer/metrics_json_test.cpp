#include "src/trainer/metrics_json.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace satrap::trainer {
namespace {

using Json = nlohmann::ordered_json;

Evaluation evaluation(const std::string& label, double auc) {
  return {
      .examples = 4, .auc = auc, .logloss = 0.5, .ne = 0.75, .calibration = 1.0, .label = label};
}

TEST(MetricsJson, WhatIsUndefinedIsNull) {
  const Json written = metrics_json({.auc = Metrics::kUndefined, .logloss = 0.5});
  EXPECT_EQ(written["loss"], 0.5);
  EXPECT_TRUE(written["auc"].is_null());
}

TEST(EvaluationJson, GroupsAndLabelsStandWhereTheyAre) {
  Evaluation e = evaluation("", 0.625);
  EXPECT_EQ(evaluation_json(e),
            Json::parse(R"({"examples": 4, "auc": 0.625, "logloss": 0.5, "ne": 0.75,
                            "calibration": 1.0})"));
  e.grouped = GroupedAuc{.auc = 0.5, .num_groups = 3};
  e.labels = {evaluation("click", 0.625), evaluation("buy", 0.875)};
  const Json written = evaluation_json(e);
  EXPECT_EQ(written["gauc"], 0.5);
  EXPECT_EQ(written["groups"], 3);
  EXPECT_EQ(written["labels"]["buy"], evaluation_json(evaluation("", 0.875)));
}

TEST(ReliabilityJson, HasTheColumnsOfEachLabel) {
  Evaluation click = evaluation("click", 0.5), buy = evaluation("buy", 0.5);
  click.reliability = {{.examples = 3, .predicted = 0.75, .positives = 1},
                       {.examples = 1, .predicted = 0.5, .positives = 0}};
  const Json columns = Json::parse(R"({"label": "click", "examples": [3, 1],
                                       "predicted": [0.75, 0.5], "positives": [1, 0]})");
  EXPECT_EQ(reliability_json(click), Json::array({columns}));
  Evaluation both = click;
  both.labels = {click, buy};
  const Json written = reliability_json(both);
  ASSERT_EQ(written.size(), 2U);
  EXPECT_EQ(written[0], columns);
  EXPECT_EQ(written[1]["label"], "buy");
  EXPECT_TRUE(written[1]["examples"].empty());
}

}  // namespace
}  // namespace satrap::trainer
