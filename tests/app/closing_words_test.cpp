#include "src/app/closing_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace satrap::app {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::ordered_json;

/// A run in which nothing is wrong: 1000 steps of 64 examples.
Json good_run() {
  return {{"path", "runs/a"},
          {"config",
           Json::array({Json::array({"data.batch_size", "64"}), Json::array({"train.epochs", "1"}),
                        Json::array({"train.max_steps", "0"}),
                        Json::array({"train.early_stopping.metric", "auc"})})},
          {"evaluations", Json::array()},
          {"summary",
           {{"step", 1000},
            {"examples", 64'000},
            {"train", {{"ne", 0.9}, {"auc", 0.7}}},
            {"eval", {{"ne", 0.91}, {"auc", 0.69}}},
            {"bad_rows", 0},
            {"positive_share", {{"click", 0.2}}},
            {"constant_inputs", Json::array()}}}};
}

void set(Json& run, const std::string& key, const std::string& value) {
  for (Json& pair : run["config"]) {
    if (pair[0] == key) pair[1] = value;
  }
}

TEST(ClosingWords, OfAGoodRunAreTheNextCommand) {
  EXPECT_EQ(closing_words(good_run()),
            "next        satrap predict --checkpoint runs/a --data FILE --out FILE\n");
}

TEST(ClosingWords, WithoutEvaluationTheNextCommandIsOne) {
  Json run = good_run();
  run["summary"].erase("eval");
  EXPECT_EQ(closing_words(run), "next        satrap eval --checkpoint runs/a --data FILE\n");
}

TEST(ClosingWords, SkippedRowsAreCountedByReason) {
  Json run = good_run();
  run["summary"]["bad_rows"] = 1200;
  run["summary"]["bad_row_share"] = 0.005;
  run["summary"]["bad_row_reasons"] = {{"expected 5 columns", 200},
                                       {"column 'n': expected a number", 1000}};
  const std::string text = closing_words(run);
  EXPECT_THAT(text, StartsWith("skipped     1,200 rows that could not be read, 0.5 % of all\n"
                               "                 1,000  column 'n': expected a number\n"
                               "                   200  expected 5 columns\n"
                               "next"));
  run["summary"]["bad_row_share"] = 0.02;
  EXPECT_THAT(closing_words(run), HasSubstr("look at     more than 1 % of the rows were skipped"));
}

TEST(ClosingWords, EvaluationOnTrainingRowsIsNamed) {
  Json run = good_run();
  run["summary"]["eval_reads_training_rows"] = "evaluation reads the same rows as training";
  EXPECT_THAT(closing_words(run),
              HasSubstr("look at     evaluation reads the same rows as training\n"));
}

TEST(ClosingWords, ALabelOfOneClassIsNamed) {
  Json run = good_run();
  run["summary"]["positive_share"]["click"] = 1.0;
  EXPECT_THAT(closing_words(run), HasSubstr("label 'click' is 1 in all examples"));
  run["summary"]["positive_share"]["click"] = 0.0;
  EXPECT_THAT(closing_words(run), HasSubstr("label 'click' is 0 in all examples"));
  run["summary"]["positive_share"]["click"] = nullptr;  // no step was finite
  EXPECT_THAT(closing_words(run), Not(HasSubstr("label")));
}

TEST(ClosingWords, InputsThatNeverChangeAreNamed) {
  Json run = good_run();
  run["summary"]["constant_inputs"] = {"a"};
  EXPECT_THAT(closing_words(run), HasSubstr("a has the same value in all examples"));
  run["summary"]["constant_inputs"] = {"a", "b", "c", "d", "e", "f", "g"};
  EXPECT_THAT(closing_words(run), HasSubstr("a, b, c, d, e and 2 more have the same value"));
  run["summary"]["examples"] = 10;  // says nothing
  EXPECT_THAT(closing_words(run), Not(HasSubstr("same value")));
}

TEST(ClosingWords, TooFewStepsComeWithASmallerBatch) {
  Json run = good_run();
  set(run, "data.batch_size", "2048");
  run["summary"]["step"] = 4;
  run["summary"]["examples"] = 8000;
  EXPECT_THAT(closing_words(run), HasSubstr("only 4 steps of 2,048 examples: a model needs "
                                            "hundreds; try data.batch_size=32"));
  run["summary"]["examples"] = 60'000;
  run["summary"]["step"] = 30;
  EXPECT_THAT(closing_words(run), HasSubstr("try data.batch_size=256"));
}

TEST(ClosingWords, WhereTheBatchIsSmallMoreEpochsHelp) {
  Json run = good_run();
  set(run, "data.batch_size", "32");
  run["summary"]["step"] = 40;
  run["summary"]["examples"] = 1280;
  EXPECT_THAT(closing_words(run), HasSubstr("try train.epochs=5"));
  set(run, "train.max_steps", "40");  // as the user has said
  EXPECT_THAT(closing_words(run), Not(HasSubstr("only")));
}

TEST(ClosingWords, AModelWorseThanTheBaseRateIsTold) {
  Json run = good_run();
  run["summary"]["eval"]["ne"] = 7.7;
  EXPECT_THAT(closing_words(run), AllOf(HasSubstr("ne 7.700 on the evaluation data is above 1: "
                                                  "worse than predicting the base rate"),
                                        HasSubstr("look at the learning rates")));
  run["summary"]["step"] = 4;
  EXPECT_THAT(closing_words(run), HasSubstr("it has learned too little"));
  run["summary"].erase("eval");
  run["summary"]["train"]["ne"] = 1.2;
  EXPECT_THAT(closing_words(run), HasSubstr("ne 1.200 on the training data is above 1"));
}

TEST(ClosingWords, OverfittingNeedsMoreThanOneEpoch) {
  Json run = good_run();
  run["summary"]["train"]["ne"] = 0.5;
  EXPECT_THAT(closing_words(run), Not(HasSubstr("by heart")));
  set(run, "train.epochs", "5");
  EXPECT_THAT(closing_words(run), HasSubstr("ne is 0.500 on the training data and 0.910 on the "
                                            "evaluation data: the model has learned its rows by "
                                            "heart"));
}

TEST(ClosingWords, ABetterEvaluationBeforeTheEndIsTold) {
  Json run = good_run();
  for (const auto& [step, auc] : {std::pair{100, 0.70}, {200, 0.94}, {500, 0.93}}) {
    run["evaluations"].push_back({{"step", step}, {"eval", {{"auc", auc}}}});
  }
  EXPECT_THAT(closing_words(run),
              HasSubstr("the evaluation was best at step 200: auc 0.9400, at the end 0.9300; with "
                        "train.early_stopping.patience the best checkpoint is kept"));
  run["summary"]["early_stopping"] = {{"metric", "auc"}, {"best_step", 200}};
  EXPECT_THAT(closing_words(run),
              HasSubstr("eval, predict and export use that checkpoint (runs/a@last: the end)"));
  run["evaluations"].back()["eval"]["auc"] = 0.9395;  // no difference to speak of
  EXPECT_THAT(closing_words(run), Not(HasSubstr("best")));
}

TEST(ClosingWords, TheBestLossIsTheSmallest) {
  Json run = good_run();
  set(run, "train.early_stopping.metric", "logloss");
  for (const auto& [step, loss] : {std::pair{100, 0.5}, {200, 0.4}, {500, 0.45}}) {
    run["evaluations"].push_back({{"step", step}, {"eval", {{"logloss", loss}}}});
  }
  EXPECT_THAT(closing_words(run), HasSubstr("best at step 200: logloss 0.4000"));
}

TEST(ClosingWords, AResultThatIsTooGoodIsDoubted) {
  Json run = good_run();
  run["summary"]["eval"]["auc"] = 0.9993;
  EXPECT_THAT(closing_words(run), HasSubstr("auc 0.9993 on the evaluation data is too good"));
}

TEST(ClosingWords, AnEvaluationOfOneClassIsNamed) {
  Json run = good_run();
  run["summary"]["eval"] = {{"examples", 3829},
                            {"auc", nullptr},
                            {"logloss", 1.17},
                            {"ne", nullptr},
                            {"calibration", 0.9}};
  EXPECT_THAT(closing_words(run), HasSubstr("the labels of all 3,829 evaluation examples are the "
                                            "same: auc and ne do not exist; choose"));
  run["summary"]["early_stopping"] = {{"best_step", nullptr}};
  EXPECT_THAT(closing_words(run), HasSubstr("and early stopping has nothing to compare"));
}

TEST(ClosingWords, AnotherBaseRateIsTold) {
  Json run = good_run();
  run["summary"]["eval"]["calibration"] = 0.67;
  EXPECT_THAT(
      closing_words(run),
      AllOf(HasSubstr("calibration 0.67 on the evaluation data: predictions are 33 % too low"),
            HasSubstr("positive labels of training, 20 %?")));
  run["summary"]["eval"]["calibration"] = 1.3;
  EXPECT_THAT(closing_words(run), HasSubstr("30 % too high"));
  run["summary"]["eval"]["calibration"] = 1.1;
  EXPECT_THAT(closing_words(run), Not(HasSubstr("calibration")));
}

TEST(ClosingWords, AReaderThatIsTooSlowIsTold) {
  Json run = good_run();
  run["summary"]["seconds"] = 100.0;
  run["summary"]["data_wait_share"] = 0.2;
  EXPECT_EQ(findings(run), std::vector<std::string>());
  run["summary"]["data_wait_share"] = 0.45;
  ASSERT_EQ(findings(run).size(), 1U);
  EXPECT_THAT(findings(run)[0], AllOf(HasSubstr("45 % of the time"), HasSubstr("--loaders")));
  run["summary"]["lag"] = 0;
  EXPECT_EQ(findings(run), std::vector<std::string>()) << "messages come when they come";
  run["summary"].erase("lag");
  run["summary"]["seconds"] = 20.0;
  EXPECT_EQ(findings(run), std::vector<std::string>()) << "too short to tell";
}

TEST(ClosingWords, OnlyWhatTheJobDoesNotHaveIsProposedAgainstOverfitting) {
  Json run = good_run();
  set(run, "train.epochs", "5");
  run["config"].push_back(Json::array({"model.dropout", "0.3"}));
  run["summary"]["train"]["ne"] = 0.6;
  run["summary"]["eval"]["ne"] = 1.1;
  const std::string text = closing_words(run);
  EXPECT_THAT(text, HasSubstr("by heart; try fewer train.epochs, train.early_stopping or "
                              "tables.default.optimizer.weight_decay"));
  EXPECT_THAT(text, Not(HasSubstr("learning rates")));
  run["summary"]["early_stopping"] = {{"best_step", 300}};
  run["evaluations"] = {{{"step", 300}, {"eval", {{"auc", 0.72}, {"ne", 0.9}}}},
                        {{"step", 1000}, {"eval", {{"auc", 0.69}, {"ne", 1.1}}}}};
  EXPECT_THAT(closing_words(run),
              AllOf(HasSubstr("was best at step 300"), HasSubstr("use that checkpoint"),
                    Not(HasSubstr("by heart")), Not(HasSubstr("above 1"))));
}

TEST(ClosingWords, ACheckpointThatWasNotKeptIsNotProposed) {
  Json run = good_run();
  run["summary"]["early_stopping"] = {{"best_step", 1000}};
  run["evaluations"] = {{{"step", 300}, {"eval", {{"auc", 0.72}}}},
                        {{"step", 1000}, {"eval", {{"auc", 0.69}}}}};
  EXPECT_THAT(closing_words(run), AllOf(HasSubstr("no checkpoint of that step was kept"),
                                        Not(HasSubstr("use that checkpoint"))));
}

}  // namespace
}  // namespace satrap::app
