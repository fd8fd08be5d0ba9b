#include "satrap/trainer/metrics_json.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace satrap::trainer {
namespace {

using Json = nlohmann::ordered_json;

Evaluation evaluation(const std::string& label, double auc) {
  Evaluation e{Metrics{.examples = 4,
                       .auc = auc,
                       .logloss = 0.5,
                       .ne = 0.75,
                       .calibration = 1.0,
                       .ap = 0.25,
                       .brier = 0.125}};
  e.label = label;
  return e;
}

TEST(MetricsJson, WhatIsUndefinedIsNull) {
  const Json written = metrics_json({.auc = Metrics::kUndefined, .loss = 0.5}, job::Loss::kBce);
  EXPECT_EQ(written["loss"], 0.5);
  EXPECT_TRUE(written["auc"].is_null());
}

TEST(MetricsJson, AreThoseOfTheLoss) {
  const Metrics number{.loss = 4.0, .rmse = 2.0, .mae = 1.5, .r2 = 0.25};
  EXPECT_EQ(metrics_json(number, job::Loss::kMse),
            Json::parse(R"({"loss": 4.0, "rmse": 2.0, "mae": 1.5, "r2": 0.25})"));
  const Metrics classes{.logloss = 0.5, .ne = 0.75, .loss = 0.5, .accuracy = 0.875};
  EXPECT_EQ(metrics_json(classes, job::Loss::kSoftmax),
            Json::parse(R"({"loss": 0.5, "accuracy": 0.875, "ne": 0.75})"));
  Evaluation e{number};
  e.examples = 3;
  e.loss_of_label = job::Loss::kMse;
  e.slices = {{.name = "country", .slices = {{.value = "DE", .metrics = number}}}};
  EXPECT_EQ(evaluation_json(e),
            Json::parse(R"({"examples": 3, "rmse": 2.0, "mae": 1.5, "r2": 0.25, "slices":
              {"country": [{"value": "DE", "examples": 0, "rmse": 2.0, "mae": 1.5, "r2": 0.25}]}})"));
  EXPECT_EQ(reliability_json(e), Json::array());
}

TEST(EvaluationJson, GroupsAndLabelsStandWhereTheyAre) {
  Evaluation e = evaluation("", 0.625);
  EXPECT_EQ(evaluation_json(e),
            Json::parse(R"({"examples": 4, "auc": 0.625, "logloss": 0.5, "ne": 0.75,
                            "calibration": 1.0, "ap": 0.25, "brier": 0.125})"));
  e.grouped = GroupedAuc{.auc = 0.5, .num_groups = 3};
  e.labels = {evaluation("click", 0.625), evaluation("buy", 0.875)};
  const Json written = evaluation_json(e);
  EXPECT_EQ(written["gauc"], 0.5);
  EXPECT_EQ(written["groups"], 3);
  EXPECT_FALSE(written.contains("positive_groups"));
  EXPECT_EQ(written["labels"]["buy"], evaluation_json(evaluation("", 0.875)));
}

TEST(ReliabilityJson, HasTheColumnsOfEachLabel) {
  Evaluation click = evaluation("click", 0.5), buy = evaluation("buy", 0.5);
  click.reliability = {{.examples = 3, .predicted = 0.75, .positives = 1, .weight = 3},
                       {.examples = 1, .predicted = 0.5, .positives = 0, .weight = 1}};
  const Json columns = Json::parse(R"({"label": "click", "examples": [3, 1],
                                       "predicted": [0.75, 0.5], "positives": [1, 0]})");
  EXPECT_EQ(reliability_json(click), Json::array({columns}));
  Evaluation both = click;
  both.labels = {click, buy};
  const Json written = reliability_json(both);
  ASSERT_EQ(written.size(), 2U);
  EXPECT_EQ(written[0], columns);
  EXPECT_EQ(written[1]["label"], "buy");
  EXPECT_FALSE(written[0].contains("weight"));
  EXPECT_TRUE(written[1]["examples"].empty());
}

TEST(EvaluationJson, HasTheRanksThatWereAskedFor) {
  Evaluation e = evaluation("", 0.5);
  e.ranking = {.at = {{.k = 5, .ndcg = 0.5, .recall = 0.25}, {.k = 10}}, .num_groups = 7};
  const Json written = evaluation_json(e);
  EXPECT_EQ(written["ndcg@5"], 0.5);
  EXPECT_EQ(written["recall@5"], 0.25);
  EXPECT_TRUE(written["ndcg@10"].is_null());
  EXPECT_EQ(written["positive_groups"], 7);
}

TEST(EvaluationJson, HasTheSlicesOfEachColumn) {
  Evaluation e = evaluation("", 0.5);
  e.slices = {{.name = "country",
               .slices = {{.value = "DE", .metrics = {.examples = 3, .auc = 0.75, .logloss = 0.5}},
                          {.metrics = {.examples = 1, .logloss = 0.25, .weight = 2.0}}}}};
  EXPECT_EQ(evaluation_json(e)["slices"], Json::parse(R"({"country": [
      {"value": "DE", "examples": 3, "auc": 0.75, "logloss": 0.5, "ne": null, "calibration": null},
      {"value": null, "examples": 1, "auc": null, "logloss": 0.25, "ne": null,
       "calibration": null}]})"));
  e.weight = 5.0;
  e.is_weighted = true;
  EXPECT_EQ(evaluation_json(e)["slices"]["country"][1]["weight"], 2.0);
}

TEST(EvaluationJson, SaysWhatExamplesWeighWhereTheyHaveWeights) {
  Evaluation e = evaluation("", 0.5);
  e.weight = 5.5;
  e.is_weighted = true;
  e.reliability = {{.examples = 4, .predicted = 0.75, .positives = 1.5, .weight = 5.5}};
  EXPECT_EQ(evaluation_json(e)["weight"], 5.5);
  EXPECT_EQ(reliability_json(e)[0]["weight"], Json::array({5.5}));
  EXPECT_EQ(reliability_json(e)[0]["positives"], Json::array({1.5}));
}

}  // namespace
}  // namespace satrap::trainer
