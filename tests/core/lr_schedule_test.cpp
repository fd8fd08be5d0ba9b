#include "satrap/core/lr_schedule.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap {
namespace {

using ::testing::StartsWith;

TEST(LrSchedule, IsConstantByDefault) {
  const LrSchedule schedule;
  EXPECT_EQ(schedule.factor(1), 1.0);
  EXPECT_EQ(schedule.factor(1'000'000'000), 1.0);
}

TEST(LrSchedule, WarmsUpLinearlyFromTheFirstStep) {
  const LrSchedule schedule{.warmup_steps = 4};
  EXPECT_EQ(schedule.factor(1), 0.25);
  EXPECT_EQ(schedule.factor(3), 0.75);
  EXPECT_EQ(schedule.factor(4), 1.0);
  EXPECT_EQ(schedule.factor(5), 1.0);
}

TEST(LrSchedule, LinearDecayBeginsAfterTheWarmUpAndStopsAtItsFloor) {
  const LrSchedule schedule{
      .warmup_steps = 2, .decay = RateDecay::kLinear, .decay_steps = 10, .min_factor = 0.25};
  EXPECT_EQ(schedule.factor(1), 0.5);
  EXPECT_EQ(schedule.factor(2), 1.0);
  EXPECT_DOUBLE_EQ(schedule.factor(7), 0.5);
  EXPECT_EQ(schedule.factor(11), 0.25);
  EXPECT_EQ(schedule.factor(1000), 0.25);
}

TEST(LrSchedule, TheFloorDoesNotLiftTheWarmUp) {
  const LrSchedule schedule{.warmup_steps = 10, .min_factor = 0.5};
  EXPECT_EQ(schedule.factor(1), 0.1);
}

TEST(LrSchedule, CosineDecayIsHalfACosine) {
  const LrSchedule schedule{.decay = RateDecay::kCosine, .decay_steps = 100};
  EXPECT_EQ(schedule.factor(0), 1.0);
  EXPECT_NEAR(schedule.factor(50), 0.5, 1e-15);
  EXPECT_NEAR(schedule.factor(25), 0.853553390593, 1e-12);
  EXPECT_EQ(schedule.factor(100), 0.0);
  EXPECT_EQ(schedule.factor(250), 0.0);
}

TEST(LrSchedule, ExponentialDecayGoesOnBeyondDecaySteps) {
  const LrSchedule schedule{.decay = RateDecay::kExponential, .decay_steps = 10, .decay_rate = 0.5};
  EXPECT_DOUBLE_EQ(schedule.factor(10), 0.5);
  EXPECT_DOUBLE_EQ(schedule.factor(30), 0.125);
}

std::string problem(const LrSchedule& schedule) {
  try {
    schedule.validate("dense_optimizer.schedule");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    return error.what();
  }
  return "";
}

TEST(LrSchedule, DecayAndDecayStepsGoTogether) {
  EXPECT_EQ(problem({}), "");
  EXPECT_EQ(problem({.decay = RateDecay::kLinear, .decay_steps = 5}), "");
  EXPECT_EQ(problem({.decay = RateDecay::kCosine}),
            "dense_optimizer.schedule: decay: cosine needs decay_steps > 0, got 0");
  EXPECT_THAT(problem({.decay_steps = 5}), StartsWith("dense_optimizer.schedule: decay_steps: 5"));
}

TEST(LrSchedule, IsASectionOfTheConfiguration) {
  LrSchedule schedule;
  load_config(schedule, "", {"decay=cosine", "decay_steps=7", "min_factor=0.1"});
  EXPECT_EQ(schedule.decay, RateDecay::kCosine);
  EXPECT_EQ(schedule.decay_steps, 7);
  EXPECT_EQ(schedule.min_factor, 0.1);
}

}  // namespace
}  // namespace satrap
