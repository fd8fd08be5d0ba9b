#include "satrap/checkpoint/checkpoint.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "satrap/checkpoint/checkpoint_format.h"
#include "satrap/core/error.h"
#include "satrap/trainer/trainer.h"
#include "tests/trainer/tiny_job.h"

namespace satrap::trainer {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

/// A run with checkpoints at steps 5 and 10.
class Checkpoint : public testing::Test {
 protected:
  void SetUp() override {
    config_ = tiny_job(directory_.path() + "/run");
    config_.train.max_steps = 10;
    config_.checkpoint.every = "5 steps";
    train(config_, {});
  }

  std::string path(int step) const {
    return config_.run_dir + "/checkpoints/step-0000000000" + (step < 10 ? "0" : "") +
           std::to_string(step);
  }

  /// The message of the error when the run is continued.
  std::string resume_error(ErrorCode expected = ErrorCode::kCorrupt) {
    TrainOptions options;
    options.resume = true;
    config_.train.max_steps = 12;
    try {
      train(config_, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), expected) << error.what();
      return error.what();
    }
    return "no error";
  }

  /// As written by versions that kept no configuration.
  static void remove_config(const std::string& checkpoint) {
    checkpoint::Manifest manifest = checkpoint::Manifest::read(checkpoint);
    ASSERT_EQ(manifest.files.erase(checkpoint::kConfigFile), 1U);
    std::ofstream(checkpoint + "/" + checkpoint::kManifestFile) << manifest.to_json();
    fs::remove(checkpoint + "/" + checkpoint::kConfigFile);
  }

  static void flip_a_bit(const std::string& file) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    const auto middle = static_cast<std::streamoff>(fs::file_size(file) / 2);
    stream.seekg(middle);
    const int byte = stream.get();
    stream.seekp(middle);
    stream.put(static_cast<char>(byte ^ 4));
  }

  TemporaryDirectory directory_;
  job::JobConfig config_;
};

TEST_F(Checkpoint, ListsStepsPositionsAndSizes) {
  const auto all = checkpoint::list_checkpoints(config_.run_dir);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].step, 5);
  EXPECT_EQ(all[1].step, 10);
  EXPECT_EQ(all[1].batches, 10);
  EXPECT_EQ(all[1].examples, 640);
  EXPECT_GT(all[1].rows, 100);
  std::int64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(path(10))) {
    if (file.path().filename() != "manifest.json")
      bytes += static_cast<std::int64_t>(file.file_size());
  }
  EXPECT_EQ(all[1].bytes, bytes);
}

TEST_F(Checkpoint, AFlippedBitInAnyFileIsFoundNamedAndRefused) {
  for (const auto& file : fs::directory_iterator(path(10))) {
    if (file.file_size() == 0) continue;
    flip_a_bit(file.path());
    const std::string name = file.path().filename();
    try {
      checkpoint::verify_checkpoint(path(10));
      ADD_FAILURE() << name << ": not found";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
      EXPECT_THAT(error.what(), AllOf(HasSubstr(name), HasSubstr(path(5))));
    }
    EXPECT_THAT(resume_error(), AllOf(HasSubstr(name), HasSubstr(path(5))));
    flip_a_bit(file.path());  // restores it
  }
  checkpoint::verify_checkpoint(path(10));
}

TEST_F(Checkpoint, ATruncatedFileIsFoundNamedAndRefused) {
  const std::string file = path(10) + "/dense.bin";
  fs::resize_file(file, fs::file_size(file) - 4);
  EXPECT_THAT(resume_error(),
              AllOf(HasSubstr("dense.bin"), HasSubstr("bytes"), HasSubstr(path(5))));
}

TEST_F(Checkpoint, AMissingFileIsFoundNamedAndRefused) {
  fs::remove(path(10) + "/table-0.bin");
  EXPECT_THAT(resume_error(), AllOf(HasSubstr("table-0.bin"), HasSubstr("missing")));
}

TEST_F(Checkpoint, AMissingManifestIsNamedAndRefused) {
  fs::remove(path(10) + "/manifest.json");
  EXPECT_THAT(resume_error(), HasSubstr("manifest.json"));
  EXPECT_THAT(checkpoint::list_checkpoints(config_.run_dir)[1].problem, HasSubstr("manifest.json"));
}

TEST_F(Checkpoint, ThePreviousOneContinuesWhenTheNewestIsDamaged) {
  const std::string expected = checkpoint::verify_checkpoint(path(10));
  fs::remove(path(10) + "/dense.bin");
  TrainOptions options;
  options.resume_from = path(5);
  const TrainOutcome outcome = train(config_, options);
  EXPECT_EQ(checkpoint::verify_checkpoint(outcome.last_checkpoint),
            expected);  // rewritten, with the same bits
}

TEST_F(Checkpoint, UnfinishedOnesOfAKilledRunAreNotListedAndGoAway) {
  const std::string unfinished = config_.run_dir + "/checkpoints/.tmp-step-000000000015";
  fs::create_directory(unfinished);
  EXPECT_EQ(checkpoint::list_checkpoints(config_.run_dir).size(), 2U);
  config_.train.max_steps = 12;
  TrainOptions options;
  options.resume = true;
  EXPECT_TRUE(train(config_, options).finished);
  EXPECT_FALSE(fs::exists(unfinished));
}

TEST_F(Checkpoint, OfAnotherTableWidthIsRefusedWithTheDifference) {
  config_.tables["default"].dim = 4;
  EXPECT_THAT(resume_error(ErrorCode::kInvalidConfig),
              AllOf(HasSubstr("table"), HasSubstr("8"), HasSubstr("4")));
}

TEST_F(Checkpoint, OfAnotherWeightTypeIsRefused) {
  config_.tables["default"].weights = FloatType::kBf16;
  EXPECT_THAT(resume_error(ErrorCode::kInvalidConfig), AllOf(HasSubstr("fp32"), HasSubstr("bf16")));
}

TEST_F(Checkpoint, OfAnotherNetworkIsRefusedWithTheFirstDifference) {
  config_.model.top = {17};
  EXPECT_THAT(resume_error(ErrorCode::kInvalidConfig), HasSubstr("top"));
}

TEST_F(Checkpoint, OfAnotherOptimizerIsRefused) {
  config_.dense_optimizer.type = DenseOptimizerType::kSgd;
  EXPECT_THAT(resume_error(ErrorCode::kInvalidConfig),
              HasSubstr("dense_optimizer.type: adam -> sgd"));
}

TEST_F(Checkpoint, WithoutAnyConfigurationIsCheckedByItsShapes) {
  remove_config(path(10));
  fs::remove(config_.run_dir + "/config.yaml");
  config_.dense_optimizer.type = DenseOptimizerType::kSgd;
  EXPECT_THAT(resume_error(ErrorCode::kInvalidConfig), HasSubstr("dense tensor"));
}

TEST_F(Checkpoint, OfAVersionThatKeptNoConfigurationIsComparedWithThatOfItsRun) {
  remove_config(path(10));
  config_.seed = 2;
  EXPECT_THAT(resume_error(ErrorCode::kInvalidConfig), HasSubstr("seed: 1 -> 2"));
}

TEST_F(Checkpoint, ResumingARunThatIsDoneChangesNothing) {
  const std::string before = checkpoint::verify_checkpoint(path(10));
  TrainOptions options;
  options.resume = true;
  EXPECT_TRUE(train(config_, options).finished);
  EXPECT_EQ(checkpoint::verify_checkpoint(path(10)), before);
}

TEST_F(Checkpoint, ResumingDropsTheMetricsOfStepsThatAreTrainedAgain) {
  config_.train.report_every = "1 steps";
  TrainOptions options;
  options.resume_from = path(5);
  train(config_, options);
  train(config_, options);
  std::ifstream file(config_.run_dir + "/metrics.jsonl");
  std::int64_t last = 0;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    if (!json.contains("train")) continue;
    EXPECT_GE(json["step"].get<std::int64_t>(), last) << line;
    last = json["step"];
  }
  EXPECT_EQ(last, 10);
}

}  // namespace
}  // namespace satrap::trainer
