#include "satrap/job/job_config.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::job {
namespace {

using testing::HasSubstr;

/// The message with which the training part of a configuration is refused; "" if it is not.
/// `written`: the setting that is in the file.
std::string refusal_of(const TrainConfig& train, const std::string& written) {
  JobConfig config;
  config.train = train;
  try {
    config.validate({{written, "job.yaml:1"}});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TrainConfig, ABoundThatGrowsBelongsToHybrid) {
  TrainConfig train;
  train.staleness_factor = 0.25;
  EXPECT_THAT(refusal_of(train, "train.staleness_schedule"), Not(HasSubstr("staleness")));
  EXPECT_EQ(train.staleness_bound().at(16), 1);
  EXPECT_EQ(train.staleness_bound().max(), 4);
  train.staleness_factor = TrainConfig().staleness_factor;
  for (const char* mode : {"sync", "async"}) {
    train.mode = mode;
    EXPECT_THAT(refusal_of(train, "train.staleness_schedule"),
                HasSubstr("job.yaml:1: train.staleness_schedule: mode " + train.mode));
    EXPECT_THAT(refusal_of(train, "train.mode"), Not(HasSubstr("staleness")));  // the default
  }
}

TEST(TrainConfig, AFactorBelongsToAScheduleThatHasOne) {
  TrainConfig train;
  train.staleness_schedule = "constant";
  EXPECT_EQ(train.staleness_bound().at(1), 4);
  train.staleness_factor = 0.25;
  EXPECT_THAT(refusal_of(train, "train.staleness_factor"),
              HasSubstr("train.staleness_factor: only schedule sqrt of hybrid has a"));
  train.staleness_schedule = "sqrt";  // the default
  for (const char* mode : {"sync", "async"}) {
    train.mode = mode;
    EXPECT_THAT(refusal_of(train, "train.staleness_factor"), HasSubstr("train.staleness_factor"));
  }
  train.mode = "sync";
  train.staleness_schedule = "constant";
  EXPECT_THAT(refusal_of(train, "train.staleness_schedule"), HasSubstr("train.staleness_factor"));
  train.staleness_factor = 0.5;  // as in the config.yaml of an older run
  EXPECT_THAT(refusal_of(train, "train.staleness_schedule"), Not(HasSubstr("staleness")));
}

TEST(TrainConfig, Fp16IsForASynchronousNetworkOfLibtorch) {
  JobConfig config;
  config.train.precision = "fp16";
  const auto refusal = [&]() -> std::string {
    try {
      config.validate({{"train.precision", "job.yaml:1"}});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  for (const char* const engine : {"native", "auto"}) {
    config.model.engine = engine;
    EXPECT_THAT(refusal(), HasSubstr("job.yaml:1: train.precision: fp16 is for a network that "
                                     "libtorch computes"));
    EXPECT_THAT(refusal(), HasSubstr("model.engine: graph"));
  }
  config.model.engine = "graph";
  EXPECT_THAT(refusal(), Not(HasSubstr("fp16")));
  config.train.mode = "async";
  EXPECT_THAT(refusal(), HasSubstr("another mode"));
  config.train.mode = "sync";
  config.model.type = "torchscript";
  EXPECT_THAT(refusal(), HasSubstr("does not go with model 'torchscript'"));
}

TEST(TrainConfig, TheDefaultBoundIsThatOfSyncForTheFirstSteps) {
  const TrainConfig train;
  EXPECT_EQ(train.staleness_bound().at(63), 0);
  EXPECT_EQ(train.staleness_bound().at(64), 1);
  EXPECT_EQ(train.staleness_bound().at(100'000), 4);
}

}  // namespace
}  // namespace satrap::job
