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
  for (const TrainMode mode : {TrainMode::kSync, TrainMode::kAsync}) {
    train.mode = mode;
    EXPECT_THAT(refusal_of(train, "train.staleness_schedule"),
                HasSubstr(concat("job.yaml:1: train.staleness_schedule: mode ",
                                 word_of(mode, kTrainModes))));
    EXPECT_THAT(refusal_of(train, "train.mode"), Not(HasSubstr("staleness")));  // the default
  }
}

TEST(TrainConfig, AFactorBelongsToAScheduleThatHasOne) {
  TrainConfig train;
  train.staleness_schedule = StalenessSchedule::kConstant;
  EXPECT_EQ(train.staleness_bound().at(1), 4);
  train.staleness_factor = 0.25;
  EXPECT_THAT(refusal_of(train, "train.staleness_factor"),
              HasSubstr("train.staleness_factor: only schedule sqrt of hybrid has a"));
  train.staleness_schedule = StalenessSchedule::kSqrt;  // the default
  for (const TrainMode mode : {TrainMode::kSync, TrainMode::kAsync}) {
    train.mode = mode;
    EXPECT_THAT(refusal_of(train, "train.staleness_factor"), HasSubstr("train.staleness_factor"));
  }
  train.mode = TrainMode::kSync;
  train.staleness_schedule = StalenessSchedule::kConstant;
  EXPECT_THAT(refusal_of(train, "train.staleness_schedule"), HasSubstr("train.staleness_factor"));
  train.staleness_factor = 0.5;  // as in the config.yaml of an older run
  EXPECT_THAT(refusal_of(train, "train.staleness_schedule"), Not(HasSubstr("staleness")));
}

TEST(JobConfig, IntervalsOfEpochsNeedDataThatHasThem) {
  const auto refusal = [](const std::string& path, data::TopicEnd end) {
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
  using enum data::TopicEnd;
  EXPECT_THAT(refusal("-", kWatermark),
              HasSubstr("job.yaml:7: checkpoint.every: '2 epochs' never comes to pass: standard "
                        "input has no epochs; write steps or a time"));
  EXPECT_THAT(refusal("kafka://host/clicks", kNever), HasSubstr("a topic without an end has no"));
  EXPECT_THAT(refusal("kafka://host/clicks", kWatermark), Not(HasSubstr("epochs")));
  EXPECT_THAT(refusal("clicks.csv", kWatermark), Not(HasSubstr("epochs")));
}

TEST(TrainConfig, Fp16IsForASynchronousNetworkOfLibtorch) {
  JobConfig config;
  config.train.precision = Precision::kFp16;
  const auto refusal = [&]() -> std::string {
    try {
      config.validate({{"train.precision", "job.yaml:1"}});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  for (const Engine engine : {Engine::kNative, Engine::kAuto}) {
    config.model.engine = engine;
    EXPECT_THAT(refusal(), HasSubstr("job.yaml:1: train.precision: fp16 needs a network that "
                                     "libtorch computes"));
    EXPECT_THAT(refusal(), HasSubstr("model.engine: graph"));
  }
  config.model.engine = Engine::kGraph;
  EXPECT_THAT(refusal(), Not(HasSubstr("fp16")));
  config.train.mode = TrainMode::kAsync;
  EXPECT_THAT(refusal(), HasSubstr("another mode"));
  config.train.mode = TrainMode::kSync;
  config.model.type = ModelType::kTorchScript;
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
  JobConfig choose(bool has_gpu,
                   const std::vector<std::string>& settings,
                   const ClusterConfig& cluster = {}) {
    write_file_atomic(path_,
                      "run_dir: runs/a\ndata: {format: synthetic}\n"
                      "tables: {default: {dim: 4}}\nmodel: {type: ffnn}\n");
    ConfigOrigins origins;
    JobConfig config = read_job(path_, settings, origins, cluster);
    choose_device(config, origins, has_gpu, cluster);
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
  EXPECT_EQ(without.device, JobDevice::kCpu);
  EXPECT_FALSE(without.embedding.has_cache());
  EXPECT_EQ(without.why_not_on_gpu, "");
  const JobConfig with = choose(true, {});
  EXPECT_EQ(with.device, JobDevice::kCuda);
  EXPECT_EQ(with.embedding.cache.memory, "auto");
  EXPECT_EQ(with.embedding.cache.memory_bytes(1000), 500);
  EXPECT_EQ(with.why_not_on_gpu, "");
}

TEST_F(AutoDevice, LeavesADeviceThatIsNamed) {
  for (const bool has_gpu : {false, true}) {
    EXPECT_EQ(choose(has_gpu, {"device=cpu"}).device, JobDevice::kCpu);
    EXPECT_EQ(choose(has_gpu, {"device=cuda"}).device, JobDevice::kCuda);
  }
}

TEST_F(AutoDevice, KeepsTheSizeOfTheCacheThatIsWritten) {
  const JobConfig config = choose(true, {"embedding.cache.memory=1MiB"});
  EXPECT_EQ(config.device, JobDevice::kCuda);
  EXPECT_EQ(config.embedding.cache.memory_bytes(1000), 1 << 20);
}

constexpr const char* kLimits = "table 'default' has capacity_rows";
constexpr const char* kWire = "as they are stored, and embedding.wire is bf16";

TEST_F(AutoDevice, ComputesAWideNetworkAloneWhereRowsCannotBeCached) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"embedding.cache.memory=0"}, ""},
      {{"tables.default.ttl_steps=10"}, kLimits},
      {{"tables.default.capacity_rows=10"}, kLimits},
      {{"embedding.store=ps", "embedding.wire=bf16"}, kWire}};
  for (auto [settings, why] : cases) {
    settings.emplace_back("model.top=[256]");
    const JobConfig wide = choose(true, settings);
    EXPECT_EQ(wide.device, JobDevice::kCuda);
    EXPECT_FALSE(wide.embedding.has_cache());
    EXPECT_THAT(wide.why_no_cache(), HasSubstr(why));
    EXPECT_EQ(wide.why_not_on_gpu, "");
    settings.back() = "model={type: ffnn, bottom: [255], top: [255]}";
    const JobConfig narrow = choose(true, settings);
    EXPECT_EQ(narrow.device, JobDevice::kCpu);
    EXPECT_THAT(narrow.why_not_on_gpu,
                AllOf(HasSubstr(why.empty() ? "embedding.cache.memory is 0" : why),
                      HasSubstr("no layer of model 'ffnn' has 256 outputs"),
                      HasSubstr("write device: cuda")));
    EXPECT_EQ(choose(false, settings).why_not_on_gpu, "");
    settings.emplace_back("device=cuda");  // who says so gets it
    EXPECT_EQ(choose(true, settings).device, JobDevice::kCuda);
  }
}

TEST_F(AutoDevice, RanksOnSeveralNodesHaveACacheOnlyIfItsMemoryIsWritten) {
  ClusterConfig nodes;
  nodes.num_ranks = 4;
  nodes.num_local_ranks = 2;
  for (const char* const device : {"device=cpu", "device=cuda", "device=auto"}) {
    const std::vector<std::string> on_shards = {device, "embedding.store=ps"};
    const auto with = [&](const char* setting) {
      return std::vector<std::string>{on_shards[0], on_shards[1], setting};
    };
    EXPECT_FALSE(choose(true, with("embedding.cache.memory=auto"), nodes).embedding.has_cache());
    EXPECT_FALSE(choose(true, on_shards, nodes).embedding.has_cache());
    EXPECT_TRUE(choose(true, with("embedding.cache.memory=1MiB"), nodes).embedding.has_cache());
  }
  EXPECT_EQ(choose(true, {"embedding.store=ps"}, nodes).device, JobDevice::kCuda);
  for (const char* const setting :
       {"model.engine=native", "model={type: ffnn, bottom: [8], top: [8]}"}) {
    const JobConfig config = choose(true, {"embedding.store=ps", setting}, nodes);
    EXPECT_EQ(config.device, JobDevice::kCpu);
    EXPECT_NE(config.why_not_on_gpu, "");
  }
}

TEST_F(AutoDevice, IsTheCpuForAJobThatAGpuCannotRunAndSaysWhy) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"embedding.store=ps", "train.mode=async", "checkpoint.every=never"}, "mode async"},
      {{"embedding.cache.memory=1MiB", "tables.default.ttl_steps=10"}, kLimits},
      {{"embedding.cache.memory=0", "model.engine=native"}, "nothing would be on the GPU"}};
  for (const auto& [settings, why] : cases) {
    const std::vector<std::string> on_gpu = {"device=cuda"};
    std::vector<std::string> named = settings;
    named.insert(named.end(), on_gpu.begin(), on_gpu.end());
    EXPECT_THAT(refusal(true, named), HasSubstr(why));
    if (settings.front() == "embedding.cache.memory=1MiB") continue;  // a CPU has none either
    const JobConfig config = choose(true, settings);
    EXPECT_EQ(config.device, JobDevice::kCpu);
    EXPECT_FALSE(config.embedding.has_cache());
    EXPECT_THAT(config.why_not_on_gpu, HasSubstr(why));
    EXPECT_EQ(choose(false, settings).why_not_on_gpu, "");
  }
}

TEST_F(AutoDevice, WhatOnlyAGpuCanDoIsRefusedWhereThereIsNone) {
  EXPECT_EQ(choose(true, {"train.precision=tf32"}).device, JobDevice::kCuda);
  EXPECT_THAT(refusal(false, {"train.precision=tf32"}), HasSubstr("train.precision: tf32"));
  EXPECT_EQ(choose(true, {"embedding.cache.eviction=lru"}).device, JobDevice::kCuda);
  EXPECT_THAT(refusal(false, {"embedding.cache.eviction=lru"}), HasSubstr("there is no cache"));
}

TEST_F(AutoDevice, WhatNeitherDeviceCanDoIsRefused) {
  EXPECT_THAT(refusal(true, {"train.precision=tf32", "model.engine=native"}),
              AllOf(HasSubstr("train.precision: tf32"), HasSubstr("fp32 or bf16")));
}

}  // namespace
}  // namespace satrap::job
