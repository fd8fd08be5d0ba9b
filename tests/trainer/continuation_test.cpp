#include "satrap/checkpoint/continuation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/checkpoint/checkpoint.h"
#include "satrap/core/error.h"
#include "satrap/trainer/trainer.h"
#include "tests/trainer/tiny_job.h"

namespace satrap::trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A run of 10 steps of 64 examples.
class ContinuationTest : public testing::Test {
 protected:
  void SetUp() override {
    config_.train.max_steps = 10;
    checkpoint_ = train(config_, {}).last_checkpoint;
    config_.train.max_steps = 12;
  }

  TrainOutcome resume() { return train(config_, {.resume = true}); }

  std::int64_t step_after_resume() {
    resume();
    return checkpoint::list_checkpoints(config_.run_dir).back().step;
  }

  TemporaryDirectory directory_;
  job::JobConfig config_ = tiny_job(directory_.path() + "/run");
  std::string checkpoint_;
};

TEST_F(ContinuationTest, WhatIsImpossibleIsToldAtOnceWithBothValuesAndWhy) {
  config_.seed = 5;
  config_.model.top = {17};
  try {
    resume();
    FAIL() << "resumed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr(checkpoint_), HasSubstr("seed: 1 -> 5 (untrained rows"),
                      HasSubstr("model.top: [16] -> [17] (the checkpoint's parameters")));
  }
}

TEST_F(ContinuationTest, LookupsMadeAheadAreDroppedWhenTheirStepsReadOtherRows) {
  EXPECT_TRUE(checkpoint::compare_with_checkpoint(checkpoint_, config_).has_same_input);
  config_.train.staleness = 1;  // the four lookups in the checkpoint would be too old
  EXPECT_FALSE(checkpoint::compare_with_checkpoint(checkpoint_, config_).has_same_input);
  EXPECT_EQ(step_after_resume(), 12);
}

TEST_F(ContinuationTest, AnotherBatchSizeGoesOnBehindTheLastRow) {
  config_.data.batch_size = 128;
  EXPECT_EQ(step_after_resume(), 12);
  EXPECT_EQ(checkpoint::list_checkpoints(config_.run_dir).back().examples, 10 * 64 + 2 * 128);
  config_.train.max_steps = 0;
  EXPECT_EQ(step_after_resume(), 12 + (40 * 64 - 10 * 64 - 2 * 128) / 128);
}

}  // namespace
}  // namespace satrap::trainer
