#include "satrap/job/job_config.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::job {
namespace {

using testing::HasSubstr;

/// The message with which the training part of a configuration is refused; "" if it is not.
std::string refusal_of(const TrainConfig& train) {
  JobConfig config;
  config.train = train;
  try {
    config.validate({});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TrainConfig, ABoundThatGrowsBelongsToHybrid) {
  TrainConfig train;
  train.staleness_schedule = "sqrt";
  train.staleness_factor = 0.25;
  EXPECT_THAT(refusal_of(train), Not(HasSubstr("staleness")));
  EXPECT_EQ(train.staleness_bound().at(16), 1);
  EXPECT_EQ(train.staleness_bound().max(), 4);
  for (const char* mode : {"sync", "async"}) {
    train.mode = mode;
    EXPECT_THAT(refusal_of(train), HasSubstr("train.staleness_schedule: mode " + train.mode));
  }
}

TEST(TrainConfig, AFactorBelongsToAScheduleThatHasOne) {
  TrainConfig train;
  EXPECT_EQ(train.staleness_bound().at(1), 4);
  train.staleness_factor = 0.25;
  EXPECT_THAT(refusal_of(train), HasSubstr("train.staleness_factor: only schedule sqrt has a"));
}

}  // namespace
}  // namespace satrap::job
