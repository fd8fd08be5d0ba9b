#include "satrap/job/job_config.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/job/read_job.h"
#include "tests/support/temporary_directory.h"

namespace satrap::job {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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

TEST(JobConfig, IntervalsOfEpochsNeedDataThatHasThem) {
  const auto refusal = [](const std::string& path, const std::string& end) {
    JobConfig config;
    config.data.train.path = {path};
    config.data.kafka.end = end;
    config.checkpoint.every = "2 epochs";
    try {
      config.validate({{"checkpoint.every", "job.yaml:7"}});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal("-", "watermark"),
              HasSubstr("job.yaml:7: checkpoint.every: '2 epochs' never comes to pass: standard "
                        "input has no epochs; write steps or a time"));
  EXPECT_THAT(refusal("kafka://host/clicks", "never"), HasSubstr("a topic without an end has no"));
  EXPECT_THAT(refusal("kafka://host/clicks", "watermark"), Not(HasSubstr("epochs")));
  EXPECT_THAT(refusal("clicks.csv", "watermark"), Not(HasSubstr("epochs")));
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

/// A job file that does not name its device.
class AutoDevice : public testing::Test {
 protected:
  JobConfig choose(bool has_gpu, const std::vector<std::string>& settings) {
    write_file_atomic(path_,
                      "run_dir: runs/a\ndata: {format: synthetic}\n"
                      "tables: {default: {dim: 4}}\nmodel: {type: ffnn}\n");
    ConfigOrigins origins;
    JobConfig config = read_job(path_, settings, origins);
    choose_device(config, origins, has_gpu);
    return config;
  }

  std::string refusal(bool has_gpu, const std::vector<std::string>& settings) {
    try {
      choose(has_gpu, settings);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
      return error.what();
    }
    return "";
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/job.yaml";
};

TEST_F(AutoDevice, IsAGpuWhereThereIsOne) {
  const JobConfig without = choose(false, {});
  EXPECT_EQ(without.device, "cpu");
  EXPECT_FALSE(without.embedding.has_cache());
  EXPECT_EQ(without.why_not_on_gpu, "");
  const JobConfig with = choose(true, {});
  EXPECT_EQ(with.device, "cuda");
  EXPECT_EQ(with.embedding.cache.memory, "auto");
  EXPECT_EQ(with.embedding.cache.memory_bytes(1000), 500);
  EXPECT_EQ(with.why_not_on_gpu, "");
}

TEST_F(AutoDevice, LeavesADeviceThatIsNamed) {
  for (const bool has_gpu : {false, true}) {
    EXPECT_EQ(choose(has_gpu, {"device=cpu"}).device, "cpu");
    EXPECT_EQ(choose(has_gpu, {"device=cuda"}).device, "cuda");
  }
}

TEST_F(AutoDevice, KeepsTheSizeOfTheCacheThatIsWritten) {
  const JobConfig config = choose(true, {"embedding.cache.memory=1MiB"});
  EXPECT_EQ(config.device, "cuda");
  EXPECT_EQ(config.embedding.cache.memory_bytes(1000), 1 << 20);
}

TEST_F(AutoDevice, IsTheCpuForAJobThatAGpuCannotRunAndSaysWhy) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"embedding.cache.memory=0"}, "embedding.cache.memory"},
      {{"tables.default.ttl_steps=10"}, "table 'default' has capacity_rows"},
      {{"tables.default.capacity_rows=10"}, "table 'default' has capacity_rows"},
      {{"embedding.store=ps", "train.mode=async", "checkpoint.every=never"}, "async has no cache"},
      {{"embedding.store=ps", "embedding.wire=bf16"}, "embedding.wire bf16 has no effect"}};
  for (const auto& [settings, why] : cases) {
    const JobConfig config = choose(true, settings);
    EXPECT_EQ(config.device, "cpu");
    EXPECT_FALSE(config.embedding.has_cache());
    EXPECT_THAT(config.why_not_on_gpu, HasSubstr(why));
    EXPECT_EQ(choose(false, settings).why_not_on_gpu, "");
  }
}

TEST_F(AutoDevice, WhatOnlyAGpuCanDoIsRefusedWhereThereIsNone) {
  EXPECT_EQ(choose(true, {"train.precision=tf32"}).device, "cuda");
  EXPECT_THAT(refusal(false, {"train.precision=tf32"}), HasSubstr("train.precision: tf32"));
  EXPECT_EQ(choose(true, {"embedding.cache.eviction=lru"}).device, "cuda");
  EXPECT_THAT(refusal(false, {"embedding.cache.eviction=lru"}), HasSubstr("there is no cache"));
}

TEST_F(AutoDevice, WhatNeitherDeviceCanDoIsRefused) {
  EXPECT_THAT(refusal(true, {"train.precision=tf32", "tables.default.ttl_steps=10"}),
              AllOf(HasSubstr("train.precision: tf32"), HasSubstr("fp32 or bf16")));
}

}  // namespace
}  // namespace satrap::job
