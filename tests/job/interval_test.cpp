#include "satrap/job/interval.h"

#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::job {
namespace {

TEST(Interval, IsANumberOfSteps) {
  for (const char* text : {"500 steps", "500 step", "500steps"}) {
    const Interval interval = Interval::parse(text, "train.yaml:3");
    EXPECT_EQ(interval.steps, 500) << text;
    EXPECT_EQ(interval.seconds, 0.0) << text;
  }
  EXPECT_EQ(Interval::parse("1 step", "x").steps, 1);
}

TEST(Interval, IsANumberOfEpochs) {
  for (const char* text : {"2 epochs", "2 epoch", "2epochs"}) {
    const Interval interval = Interval::parse(text, "train.yaml:3");
    EXPECT_EQ(interval.epochs, 2) << text;
    EXPECT_EQ(interval.steps, 0) << text;
    EXPECT_EQ(interval.seconds, 0.0) << text;
  }
  EXPECT_EQ(Interval::parse("1 epoch", "x").epochs, 1);
}

TEST(Interval, IsNoPartOfAnEpoch) {
  try {
    Interval::parse("0.5 epochs", "train.eval_every");
    ADD_FAILURE() << "it is accepted";
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).ends_with("parts of epochs are intervals of steps"))
        << error.what();
  }
}

TEST(Interval, EndsWithItsStepOrEpoch) {
  EXPECT_TRUE(Interval{.steps = 3}.ends_with(6, 0));
  EXPECT_FALSE(Interval{.steps = 3}.ends_with(7, 3)) << "steps, not epochs";
  EXPECT_FALSE(Interval{.epochs = 2}.ends_with(2, 0));
  EXPECT_FALSE(Interval{.epochs = 2}.ends_with(10, 1));
  EXPECT_TRUE(Interval{.epochs = 2}.ends_with(20, 2));
  EXPECT_FALSE(Interval{}.ends_with(1, 1));
}

TEST(Interval, IsATime) {
  EXPECT_EQ(Interval::parse("30s", "x").seconds, 30.0);
  EXPECT_EQ(Interval::parse("10min", "x").seconds, 600.0);
  EXPECT_EQ(Interval::parse("1h30min", "x").seconds, 5400.0);
  EXPECT_EQ(Interval::parse("500ms", "x").seconds, 0.5);
  EXPECT_EQ(Interval::parse("10min", "x").steps, 0);
}

TEST(Interval, NeverIsNeither) {
  const Interval never = Interval::parse("never", "x");
  EXPECT_EQ(never.steps, 0);
  EXPECT_EQ(never.seconds, 0.0);
}

TEST(Interval, AnythingElseIsRefusedWithItsPlace) {
  for (const char* text : {"", "0", "0s", "0 steps", "-5 steps", "500", "500 stepz", "steps",
                           "Never", " 500 steps", "500 steps ", "5e3 steps", "10 parsecs", "nan s",
                           "0 epoch steps", "99999999999999999999 steps"}) {
    try {
      Interval::parse(text, "train.yaml:3");
      ADD_FAILURE() << "'" << text << "' is accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
      EXPECT_EQ(std::string(error.what()), concat("train.yaml:3: expected an interval such as '500 "
                                                  "steps', '1 epoch', '10min', '30s' or "
                                                  "'never', got '",
                                                  text, "'"));
    }
  }
}

std::vector<std::int64_t> due_steps(Interval interval, std::int64_t num_steps) {
  IntervalClock clock(interval);
  std::vector<std::int64_t> due;
  for (std::int64_t step = 1; step <= num_steps; ++step) {
    if (clock.due(step, 0)) due.push_back(step);
  }
  return due;
}

TEST(IntervalClock, StepsAreDueAtTheirMultiples) {
  EXPECT_EQ(due_steps({.steps = 3}, 10), (std::vector<std::int64_t>{3, 6, 9}));
  EXPECT_EQ(due_steps({.steps = 1}, 3), (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(IntervalClock, ARunThatContinuesIsDueAtTheSameSteps) {
  IntervalClock clock({.steps = 100});
  EXPECT_FALSE(clock.due(250, 0));
  EXPECT_TRUE(clock.due(300, 0));
}

TEST(IntervalClock, NeverIsNeverDue) { EXPECT_TRUE(due_steps({}, 100).empty()); }

TEST(IntervalClock, ALongTimeIsNotDueYet) {
  EXPECT_TRUE(due_steps({.seconds = 3600.0}, 100).empty());
}

TEST(IntervalClock, ATimeIsDueOnceItHasPassedAndCountsFromThere) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  IntervalClock clock({.seconds = 0.01});
  for (int times = 1; times <= 3; ++times) {
    while (!clock.due(1, 0)) ASSERT_LT(seconds(), 60.0);
    EXPECT_GE(seconds(), 0.01 * times);
  }
}

}  // namespace
}  // namespace satrap::job
