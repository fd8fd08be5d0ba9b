#include <algorithm>
#include <atomic>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "satrap/checkpoint/checkpoint.h"
#include "satrap/trainer/trainer.h"
#include "tests/trainer/tiny_cluster.h"
#include "tests/trainer/tiny_job.h"

namespace satrap::trainer {
namespace {

using nlohmann::json;

constexpr std::int64_t kPatience = 3;
constexpr std::int64_t kStepsBetween = 5;  // between evaluations

/// A job that overfits its few rows: the logloss of other rows falls, then rises.
job::JobConfig overfitting_job(const std::string& run_dir) {
  job::JobConfig config = tiny_job(run_dir);
  config.data.synthetic.rows = 64 * 10;
  config.tables["default"].optimizer.lr = 0.1;
  config.train.epochs = 100;
  config.train.eval_every = "5 steps";
  config.train.early_stopping = {job::StoppingMetric::kLogloss, kPatience, 0.0};
  config.checkpoint.keep = 1;
  return config;
}

struct Seen {
  std::int64_t step = 0;
  double logloss = 0.0;
};

/// The evaluations of a run, from its metrics.jsonl.
std::vector<Seen> evaluations_of(const job::JobConfig& config) {
  std::ifstream file(config.run_dir + "/metrics.jsonl");
  std::vector<Seen> all;
  for (std::string line; std::getline(file, line);) {
    const json entry = json::parse(line);
    if (entry.contains("eval")) all.push_back({entry["step"], entry["eval"]["logloss"]});
  }
  return all;
}

TEST(EarlyStopRun, ARunThatOverfitsEndsAndKeepsItsBestCheckpoint) {
  const TemporaryDirectory directory;
  const job::JobConfig config = overfitting_job(directory.path() + "/run");
  const TrainOutcome outcome = train(config, {});
  EXPECT_TRUE(outcome.finished);

  const std::vector<Seen> seen = evaluations_of(config);
  const auto best = std::ranges::min_element(seen, {}, &Seen::logloss);
  ASSERT_GT(best - seen.begin(), 0) << "it should have learnt something first";
  EXPECT_EQ(seen.end() - best - 1, kPatience);
  const json summary = summary_of(outcome);
  EXPECT_EQ(summary["finished"], true);
  EXPECT_EQ(summary["step"], best->step + kPatience * kStepsBetween);
  json early = summary["early_stopping"];
  EXPECT_EQ(early["eval"]["logloss"], best->logloss);
  early.erase("eval");
  EXPECT_EQ(early, (json{{"metric", "logloss"},
                         {"best_step", best->step},
                         {"best_value", best->logloss},
                         {"stopped", true}}));

  const auto checkpoints = checkpoint::list_checkpoints(config.run_dir);
  ASSERT_EQ(checkpoints.size(), 2U);  // the best, and the newest
  EXPECT_EQ(checkpoints[0].step, best->step);
  EXPECT_EQ(checkpoints[0].best_of, "logloss");
  EXPECT_EQ(checkpoints[1].step, summary["step"]);
  EXPECT_EQ(checkpoints[1].best_of, "");
  EXPECT_EQ(evaluate(config, {checkpoints[0].path}, nullptr).logloss, best->logloss);
}

TEST(EarlyStopRun, ARunThatGetsBetterToItsEndIsNotStopped) {
  const TemporaryDirectory directory;
  job::JobConfig config = overfitting_job(directory.path() + "/run");
  config.train.max_steps = 10;
  const json summary = summary_of(train(config, {}));
  EXPECT_EQ(summary["step"], 10);
  EXPECT_EQ(summary["early_stopping"]["stopped"], false);
  EXPECT_EQ(checkpoint::list_checkpoints(config.run_dir).back().best_of, "logloss");
}

TEST(EarlyStopRun, ResumingARunThatStoppedTrainsNoFurther) {
  const TemporaryDirectory directory;
  const job::JobConfig config = overfitting_job(directory.path() + "/run");
  const json stopped = summary_of(train(config, {}));
  for (int i = 0; i < 2; ++i) {
    const TrainOutcome outcome = train(config, {.resume = true});
    EXPECT_TRUE(outcome.finished);
    const json summary = summary_of(outcome);
    EXPECT_EQ(summary["step"], stopped["step"]);
    EXPECT_EQ(summary["early_stopping"], stopped["early_stopping"]);
    EXPECT_EQ(summary["eval"], stopped["eval"]);
  }
}

TEST(EarlyStopRun, MorePatienceContinuesARunThatStopped) {
  const TemporaryDirectory directory;
  job::JobConfig config = overfitting_job(directory.path() + "/run");
  const json stopped = summary_of(train(config, {}));
  config.train.early_stopping.patience += 2;
  const json summary = summary_of(train(config, {.resume = true}));
  EXPECT_EQ(summary["step"].get<std::int64_t>(),
            stopped["step"].get<std::int64_t>() + 2 * kStepsBetween);
  EXPECT_EQ(summary["early_stopping"]["best_step"], stopped["early_stopping"]["best_step"]);
}

TEST(EarlyStopRun, SignalsBeforeAnEvaluationDoNotChangeTheDecision) {
  const TemporaryDirectory directory;
  job::JobConfig config = overfitting_job(directory.path() + "/undisturbed");
  const TrainOutcome undisturbed = train(config, {});

  config.run_dir = directory.path() + "/disturbed";
  config.train.report_every = "1 steps";
  TrainOutcome outcome;
  int stops = 0;
  // Every second stop interrupts the evaluation that is due right after that step.
  for (std::int64_t next_stop = 5; !outcome.finished; next_stop += stops % 2 == 0 ? 3 : 7) {
    std::atomic<bool> stop = false;
    TrainOptions options;
    options.resume = true;
    options.stop = &stop;
    options.on_report = [&](const Report& report) { stop = report.step >= next_stop; };
    outcome = train(config, options);
    stops += outcome.finished ? 0 : 1;
    ASSERT_LT(stops, 200);
  }
  EXPECT_GE(stops, 3);
  EXPECT_EQ(summary_of(outcome)["early_stopping"], summary_of(undisturbed)["early_stopping"]);
  EXPECT_EQ(summary_of(outcome)["step"], summary_of(undisturbed)["step"]);
  EXPECT_EQ(checkpoint::verify_checkpoint(outcome.last_checkpoint),
            checkpoint::verify_checkpoint(undisturbed.last_checkpoint));
}

TEST(EarlyStopRun, RanksStopTogether) {
  const TemporaryDirectory directory;
  const job::JobConfig config = overfitting_job(directory.path() + "/run");
  const TrainOutcome outcome = TinyCluster(config, 2, 2).train();
  EXPECT_TRUE(outcome.finished);
  const json summary = summary_of(outcome);
  EXPECT_EQ(summary["early_stopping"]["stopped"], true);
  EXPECT_LT(summary["step"], 1000);
  const TrainOutcome again = TinyCluster(config, 1, 2).train({.resume = true});
  EXPECT_TRUE(again.finished);
  EXPECT_EQ(summary_of(again)["step"], summary["step"]);
}

}  // namespace
}  // namespace satrap::trainer
