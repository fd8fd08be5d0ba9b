#include "src/app/training_display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace satrap::app {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string describe(const std::string& json) {
  return describe_summary(nlohmann::ordered_json::parse(json), "run/summary.json");
}

using Phase = trainer::LiveProgress::Phase;

TEST(ProgressText, HasAPhaseFromTheFirstMoment) {
  trainer::LiveProgress live;
  EXPECT_EQ(progress_text(live, {}, 0.0, -1.0), "starting");
  live.phase = Phase::kFitting;
  EXPECT_EQ(progress_text(live, {}, 0.0, -1.0), "fitting transforms");
}

TEST(ProgressText, ShowsStepsAndTheNewestMetricsWhileTraining) {
  trainer::LiveProgress live;
  live.phase = Phase::kTraining;
  live.set_trained({.step = 30, .share = 0.5});
  EXPECT_EQ(progress_text(live, {}, 0.0, 2500.0),
            "[#####.....]  50%  training  step 30  2.50k examples/s");
  const trainer::Report report{
      .window = {.auc = 0.75, .loss = 0.25}, .eta_seconds = 12.0, .wait_share = 0.04};
  EXPECT_EQ(progress_text(live, report, 2.0, 2500.0),
            "[#####.....]  50%  training  loss 0.2500  auc 0.7500  eta 10.0s  step 30  2.50k "
            "examples/s  input wait 4%");
  EXPECT_THAT(progress_text(live, report, 12.0, 2500.0), Not(HasSubstr("eta"))) << "it was wrong";
}

TEST(ProgressText, TellsHowFarATopicIsBehindAndWhoWaitsForIt) {
  trainer::LiveProgress live;
  live.phase = Phase::kTraining;
  live.set_trained({.step = 30});
  trainer::Report report{.wait_share = 0.5, .data_wait_share = 0.2, .lag = 1500, .age = 12.3};
  EXPECT_THAT(progress_text(live, report, 0.0, 1.0),
              HasSubstr("input wait 50%  lag 1.50k  age 12.3s"));
  report.data_wait_share = 0.45;
  EXPECT_THAT(progress_text(live, report, 0.0, 1.0), HasSubstr("input wait 50%, for data 45%"));
}

TEST(ProgressText, AnEvaluationHasItsOwnCountAndNoTimeLeft) {
  trainer::LiveProgress live;
  live.phase = Phase::kEvaluating;
  live.set_trained({.step = 60, .share = 1.0});
  live.evaluated = 2000;
  const trainer::Report report{.window = {.auc = 0.75, .loss = 0.25}, .eta_seconds = 0.0};
  EXPECT_EQ(progress_text(live, report, 0.5, 2500.0),
            "[##########] 100%  evaluating  2.00k examples  loss 0.2500  auc 0.7500  step 60");
}

TEST(ProgressText, MetricsAndTimeLeftFitInto80Columns) {
  trainer::LiveProgress live;
  live.phase = Phase::kTraining;
  live.set_trained({.step = 1234567, .share = 1.0});
  const trainer::Report report{.window = {.auc = 0.75, .loss = 12.25}, .eta_seconds = 100000.0};
  const std::string line = progress_text(live, report, 0.0, 123456.0);
  EXPECT_THAT(line.substr(0, 80), HasSubstr("loss 12.2500  auc 0.7500  eta 1d03h  step 1234567"));
  EXPECT_THAT(("[rank 12] " + line).substr(0, 80), HasSubstr("loss 12.2500  auc 0.7500  eta"));
}

TEST(ProgressText, HasTheMetricOfTheLoss) {
  trainer::LiveProgress live;
  live.phase = Phase::kTraining;
  trainer::Report report{.loss_of_label = job::Loss::kMse, .window = {.loss = 2.25, .rmse = 1.5}};
  EXPECT_THAT(progress_text(live, report, 0.0, 1.0), HasSubstr("loss 2.2500  rmse 1.5000"));
  report = {.loss_of_label = job::Loss::kSoftmax, .window = {.loss = 0.5, .accuracy = 0.75}};
  EXPECT_THAT(progress_text(live, report, 0.0, 1.0), HasSubstr("loss 0.5000  accuracy 0.7500"));
}

TEST(RecentRate, IsThatOfTheLastSeconds) {
  RecentRate rate;
  EXPECT_LT(rate.add(0.0, 100), 0.0);
  EXPECT_EQ(rate.add(1.0, 200), 100.0);
  EXPECT_EQ(rate.add(2.0, 300), 100.0);
  for (int second = 3; second <= 10; ++second) rate.add(second, 300 + 1000 * (second - 2));
  EXPECT_EQ(rate.add(11.0, 9300), 1000.0);
}

TEST(DescribeSummary, ShowsMetricsAndThePlaceOfTheFile) {
  const std::string text = describe(R"({
    "step": 12, "examples": 1200, "seconds": 2.0, "examples_per_second": 600.0,
    "train": {"loss": 0.5, "auc": 0.75, "ne": 0.9},
    "eval": {"auc": 0.7, "logloss": 0.55, "ne": 0.95, "calibration": 1.01}})");
  EXPECT_THAT(text, HasSubstr("12 steps, 1200 examples"));
  EXPECT_THAT(text, HasSubstr("600 examples/s"));
  EXPECT_THAT(text, HasSubstr("loss 0.50000  auc 0.75000"));
  EXPECT_THAT(text, HasSubstr("auc 0.70000  logloss 0.55000"));
  EXPECT_THAT(text, HasSubstr("run/summary.json"));
}

TEST(DescribeSummary, ShowsTheMetricsOfNumbersAndOfClasses) {
  const std::string number = describe(R"({"step": 1,
    "train": {"loss": 4.0, "rmse": 2.0, "mae": 1.5, "r2": 0.25},
    "eval": {"rmse": 2.5, "mae": 1.75, "r2": null}})");
  EXPECT_THAT(number,
              HasSubstr("train       loss 4.00000  rmse 2.00000  mae 1.50000  r2 0.2500\n"));
  EXPECT_THAT(number, HasSubstr("eval        rmse 2.50000  mae 1.75000  r2 -\n"));
  const std::string classes = describe(R"({"step": 1,
    "train": {"loss": 1.0, "accuracy": 0.5, "ne": 0.75},
    "eval": {"accuracy": 0.25, "logloss": 1.5, "ne": 1.125}})");
  EXPECT_THAT(classes, HasSubstr("train       loss 1.00000  accuracy 0.50000  ne 0.7500\n"));
  EXPECT_THAT(classes, HasSubstr("eval        accuracy 0.25000  logloss 1.50000  ne 1.1250\n"));
  const std::string mixed = describe(R"({"step": 1, "train": {"loss": 0.5, "auc": 0.75, "ne": 0.9},
    "eval": {"auc": 0.7, "logloss": 0.55, "ne": 0.95, "calibration": 1.0, "labels": {
      "click": {"auc": 0.7, "logloss": 0.55}, "watch": {"rmse": 2.0, "mae": 1.0}}}})");
  EXPECT_THAT(mixed, HasSubstr("            click: auc 0.70000  logloss 0.55000\n"));
  EXPECT_THAT(mixed, HasSubstr("            watch: rmse 2.00000  mae 1.00000\n"));
}

TEST(DescribeSummary, UndefinedNumbersAreDashes) {
  const std::string text = describe(R"({"step": 1, "train": {"loss": 0.1, "auc": null}})");
  EXPECT_THAT(text, HasSubstr("loss 0.10000  auc -"));
  EXPECT_THAT(text, Not(HasSubstr("eval")));
}

}  // namespace
}  // namespace satrap::app
