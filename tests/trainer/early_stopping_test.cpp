#include "src/trainer/early_stopping.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace satrap::trainer {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

using enum job::StoppingMetric;

Evaluation evaluation_with(job::StoppingMetric metric, double value) {
  Evaluation evaluation;
  // The other metrics never get better.
  evaluation.auc = metric == kAuc ? value : 0.5;
  evaluation.logloss = metric == kLogloss ? value : 0.5;
  evaluation.ne = metric == kNe ? value : 0.5;
  evaluation.rmse = metric == kRmse ? value : 0.5;
  evaluation.mae = metric == kMae ? value : 0.5;
  evaluation.accuracy = metric == kAccuracy ? value : 0.5;
  if (metric == kGauc) evaluation.grouped = {value, 3};
  return evaluation;
}

struct Sequence {
  const char* name;
  job::StoppingMetric metric;
  std::int64_t patience;
  double min_delta;
  std::vector<double> values;  // of the evaluations of steps 10, 20, 30, ...
  std::int64_t stops_after;    // number of evaluations; 0: never
  std::int64_t best_step;

  job::EarlyStoppingConfig config() const { return {metric, patience, min_delta}; }
};

const std::vector<Sequence>& sequences() {
  static const std::vector<Sequence> all = {
      {"GetsBetterAllTheTime", kAuc, 1, 0.0, {0.5, 0.6, 0.7, 0.8}, 0, 40},
      {"LoglossWantsToFall", kLogloss, 1, 0.0, {0.5, 0.4, 0.3, 0.2}, 0, 40},
      {"NeWantsToFall", kNe, 2, 0.0, {0.9, 0.8, 0.85, 0.81}, 4, 20},
      {"RmseWantsToFall", kRmse, 1, 0.0, {5.0, 4.0, 4.5}, 3, 20},
      {"MaeWantsToFall", kMae, 1, 0.0, {5.0, 4.0, 4.5}, 3, 20},
      {"AccuracyWantsToRise", kAccuracy, 1, 0.0, {0.5, 0.75, 0.625}, 3, 20},
      {"GroupedAucThatFallsStops", kGauc, 2, 0.0, {0.7, 0.6, 0.5, 0.4}, 3, 10},
      {"GroupedAucWantsToRise", kGauc, 1, 0.0, {0.5, 0.6, 0.7}, 0, 30},
      {"AucThatFallsStops", kAuc, 2, 0.0, {0.7, 0.6, 0.5, 0.4}, 3, 10},
      {"EqualIsNotBetter", kAuc, 2, 0.0, {0.7, 0.7, 0.7}, 3, 10},
      {"ABetterOneStartsTheCountAgain", kAuc, 2, 0.0, {0.7, 0.6, 0.8, 0.6, 0.6}, 5, 30},
      {"GainOfMinDeltaIsNotEnough", kAuc, 2, 0.25, {0.5, 0.75, 0.75}, 3, 10},
      {"GainAboveMinDeltaIs", kAuc, 2, 0.125, {0.5, 0.75, 0.75}, 0, 20},
      {"SmallGainsAddUp", kAuc, 3, 0.125, {0.5, 0.5625, 0.625, 0.6875}, 0, 40},
      {"PatienceOne", kLogloss, 1, 0.0, {0.5, 0.6}, 2, 10},
      {"UndefinedIsNotBetter", kAuc, 2, 0.0, {0.5, kUndefined, kUndefined}, 3, 10},
      {"UndefinedFromTheStart", kAuc, 2, 0.0, {kUndefined, kUndefined}, 2, -1},
      {"FirstValueAfterUndefined", kLogloss, 2, 0.0, {kUndefined, 7.0, 8.0}, 0, 20},
      {"NoPatienceNeverStops", kAuc, 0, 0.0, {0.9, 0.8, 0.7, 0.6}, 0, -1},
      {"NoEvaluation", kAuc, 1, 0.0, {}, 0, -1},
  };
  return all;
}

class EarlyStoppingOf : public testing::TestWithParam<Sequence> {};
INSTANTIATE_TEST_SUITE_P(Sequences,
                         EarlyStoppingOf,
                         testing::ValuesIn(sequences()),
                         [](const auto& of) { return std::string(of.param.name); });

TEST_P(EarlyStoppingOf, StopsAfterTheRightEvaluationAndKnowsTheBest) {
  const Sequence& c = GetParam();
  EarlyStopping stopping(c.config());
  std::int64_t stopped_after = 0;
  for (std::int64_t i = 1; i <= std::ssize(c.values) && stopped_after == 0; ++i) {
    stopping.observe(10 * i, evaluation_with(c.metric, c.values[static_cast<std::size_t>(i - 1)]));
    if (stopping.should_stop()) stopped_after = i;
  }
  EXPECT_EQ(stopped_after, c.stops_after);
  EXPECT_EQ(stopping.state().best_step, c.best_step);
}

TEST_P(EarlyStoppingOf, DecidesTheSameWhenRestoredAfterEveryEvaluation) {
  const Sequence& c = GetParam();
  EarlyStopping undisturbed(c.config());
  checkpoint::EarlyStoppingState saved = undisturbed.state();
  for (std::int64_t i = 1; i <= std::ssize(c.values); ++i) {
    const Evaluation evaluation =
        evaluation_with(c.metric, c.values[static_cast<std::size_t>(i - 1)]);
    EarlyStopping restored(c.config());
    restored.restore(saved);
    restored.observe(10 * i, evaluation);
    undisturbed.observe(10 * i, evaluation);
    EXPECT_EQ(restored.should_stop(), undisturbed.should_stop());
    EXPECT_EQ(restored.state(), undisturbed.state());
    saved = restored.state();
  }
}

TEST(EarlyStopping, AnEvaluationOfTheSameStepCountsOnce) {
  EarlyStopping stopping({kAuc, 2, 0.0});
  for (int i = 0; i < 5; ++i) stopping.observe(10, evaluation_with(kAuc, 0.7));
  EXPECT_TRUE(stopping.is_best(10));
  EXPECT_EQ(stopping.state().bad_evaluations, 0);
}

TEST(EarlyStopping, TheStateOfAnotherMetricIsNotContinued) {
  EarlyStopping auc({kAuc, 2, 0.0});
  auc.observe(10, evaluation_with(kAuc, 0.7));
  EarlyStopping logloss({kLogloss, 2, 0.0});
  logloss.restore(auc.state());
  EXPECT_EQ(logloss.state().best_step, -1);
  EXPECT_EQ(logloss.state().last_step, -1);
}

}  // namespace
}  // namespace satrap::trainer
