#include "src/trainer/run_directory.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "tests/support/temporary_directory.h"

namespace satrap::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Mode = RunDirectory::Mode;

class RunDirectoryTest : public testing::Test {
 protected:
  RunDirectoryTest() { config_.run_dir = folder_.path() + "/run"; }

  std::string path(const std::string& name) const { return config_.run_dir + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(config_.run_dir);
    std::ofstream(path(name)) << text;
  }
  std::string refusal(Mode mode) const {
    try {
      const RunDirectory directory(config_, mode);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  TemporaryDirectory folder_;
  job::JobConfig config_;
};

TEST_F(RunDirectoryTest, BeginsWithItsConfigurationAndALineOfTheStart) {
  RunDirectory directory(config_, Mode::kFresh);
  EXPECT_THAT(list_directory(config_.run_dir), ElementsAre(".lock"));
  directory.begin(0, {{"ranks", 1}});
  EXPECT_EQ(read_file(path("config.yaml")), dump_config(config_));
  EXPECT_EQ(read_file(path("metrics.jsonl")), "{\"step\":0,\"start\":{\"ranks\":1}}\n");
  EXPECT_FALSE(std::filesystem::exists(path("tensorboard")));
  EXPECT_EQ(directory.checkpoints(), path("checkpoints"));
  EXPECT_EQ(RunDirectory::checkpoints_of(config_), path("checkpoints"));
}

TEST_F(RunDirectoryTest, LinesAreThereAtOnce) {
  RunDirectory directory(config_, Mode::kFresh);
  directory.begin(0, {});
  directory.append_metrics({{"step", 1}});
  directory.append_metrics({{"step", 2}});
  EXPECT_THAT(read_file(path("metrics.jsonl")), HasSubstr("}\n{\"step\":1}\n{\"step\":2}\n"));
}

TEST_F(RunDirectoryTest, AFreshRunRefusesAnEarlierOne) {
  for (const std::string name : {"config.yaml", "metrics.jsonl", "summary.json", "report.html",
                                 "tensorboard", "checkpoints"}) {
    write(name, "earlier");
    EXPECT_THAT(refusal(Mode::kFresh), HasSubstr("holds an earlier run (" + name + ")"));
    EXPECT_EQ(refusal(Mode::kOverwrite), "");
    EXPECT_EQ(refusal(Mode::kResume), "");
    EXPECT_EQ(read_file(path(name)), "earlier");
    std::filesystem::remove(path(name));
  }
  write("notes.txt", "mine");
  EXPECT_EQ(refusal(Mode::kFresh), "");
}

TEST_F(RunDirectoryTest, OverwritingRemovesTheFilesOfARunAndNothingElse) {
  write("metrics.jsonl", "{\"step\":5}\n");
  write("summary.json", "{}");
  write("notes.txt", "mine");
  std::filesystem::create_directories(path("checkpoints/step-5"));
  RunDirectory directory(config_, Mode::kOverwrite);
  EXPECT_EQ(read_file(path("summary.json")), "{}");  // until it begins
  directory.begin(0, 1);
  EXPECT_FALSE(std::filesystem::exists(path("summary.json")));
  EXPECT_FALSE(std::filesystem::exists(path("checkpoints")));
  EXPECT_EQ(read_file(path("metrics.jsonl")), "{\"step\":0,\"start\":1}\n");
  EXPECT_EQ(read_file(path("notes.txt")), "mine");
}

TEST_F(RunDirectoryTest, AContinuedRunDropsTheLinesOfLaterStepsAndBrokenOnes) {
  write("metrics.jsonl",
        "{\"step\":0}\n{\"step\":5,\"a\":1}\n{\"step\":6}\nnoise\n{\"b\":1}\n{\"st");
  RunDirectory directory(config_, Mode::kResume);
  directory.begin(5, 1);
  EXPECT_EQ(read_file(path("metrics.jsonl")),
            "{\"step\":0}\n{\"step\":5,\"a\":1}\n{\"step\":5,\"start\":1}\n");
}

TEST_F(RunDirectoryTest, AContinuedRunMayHaveNoFilesYet) {
  RunDirectory directory(config_, Mode::kResume);
  directory.begin(3, 1);
  EXPECT_EQ(read_file(path("metrics.jsonl")), "{\"step\":3,\"start\":1}\n");
}

TEST_F(RunDirectoryTest, TensorBoardGetsItsEventsIfWanted) {
  config_.train.tensorboard = true;
  RunDirectory directory(config_, Mode::kFresh);
  directory.begin(0, 1);
  directory.append_metrics({{"step", 1}, {"train", {{"auc", 0.5}}}});
  std::string events;
  for (const auto& file : std::filesystem::directory_iterator(path("tensorboard"))) {
    events += read_file(file.path());
  }
  EXPECT_THAT(events, HasSubstr("train/auc"));
}

TEST_F(RunDirectoryTest, ASummaryReplacesTheEarlierOne) {
  RunDirectory directory(config_, Mode::kFresh);
  directory.write_summary({{"step", 1}});
  directory.write_summary({{"step", 2}});
  EXPECT_EQ(read_file(path("summary.json")), "{\n  \"step\": 2\n}\n");
}

TEST_F(RunDirectoryTest, APlaceThatIsNoFolderIsAnError) {
  std::ofstream(config_.run_dir) << "a file";
  for (const Mode mode : {Mode::kFresh, Mode::kOverwrite, Mode::kResume}) {
    EXPECT_THAT(refusal(mode), HasSubstr(config_.run_dir));
  }
}

}  // namespace
}  // namespace satrap::trainer
