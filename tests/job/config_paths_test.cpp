#include "satrap/job/config_paths.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/job/read_job.h"
#include "tests/support/temporary_directory.h"

namespace satrap::job {
namespace {

namespace fs = std::filesystem;

class ConfigPaths : public testing::Test {
 protected:
  JobConfig read(const std::string& text, const std::vector<std::string>& settings = {}) const {
    write_file_atomic(path_, text + "data: {train: a.csv, schema: {features: [a]}}\n");
    ConfigOrigins origins;
    return read_job(path_, settings, origins);
  }

  const TemporaryDirectory directory_;
  const std::string folder_ = directory_.path();
  const std::string path_ = folder_ + "/job.yaml";
};

TEST_F(ConfigPaths, ThoseOfTheFileBeginInItsFolder) {
  const JobConfig config = read("run_dir: runs/a\n", {"train.warm_start.dense=true"});
  EXPECT_EQ(config.run_dir, folder_ + "/runs/a");
  EXPECT_EQ(config.data.train.path, std::vector{folder_ + "/a.csv"});
}

TEST_F(ConfigPaths, AFileInTheWorkingDirectoryHasAFolderToo) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  write_file_atomic(path_, "data: {train: a.csv, schema: {features: [a]}}\n");
  ConfigOrigins origins;
  const JobConfig config = read_job("job.yaml", {}, origins);
  const std::string here = fs::current_path().string();
  fs::current_path(before);
  EXPECT_EQ(config.data.train.path, std::vector{here + "/a.csv"});
}

TEST_F(ConfigPaths, TheDefaultRunDirIsBesideTheFile) {
  EXPECT_EQ(read("").run_dir, folder_ + "/runs/job");
}

TEST_F(ConfigPaths, ThoseOfTheCommandLineBeginInTheWorkingDirectory) {
  const std::string here = fs::current_path().string();
  const JobConfig config = read("run_dir: runs/a\n", {"run_dir=b", "data.eval=[c*.csv, d.csv]"});
  EXPECT_EQ(config.run_dir, here + "/b");
  EXPECT_EQ(config.data.eval.path, (std::vector{here + "/c*.csv", here + "/d.csv"}));
  EXPECT_EQ(config.data.train.path, std::vector{folder_ + "/a.csv"});
}

TEST_F(ConfigPaths, UpwardsIsThroughTheRealFolders) {
  fs::create_directories(folder_ + "/real/inner");
  fs::create_directory_symlink(folder_ + "/real/inner", folder_ + "/link");
  const fs::path real = fs::canonical(folder_ + "/real");
  EXPECT_EQ(read("", {}).run_dir, folder_ + "/runs/job");
  EXPECT_EQ(read("run_dir: link/../x\n").run_dir, (real / "x").string());
}

TEST_F(ConfigPaths, StandardInputAndUrlsAndAbsolutePathsStay) {
  const JobConfig config = read("run_dir: /r\n", {"data.train=-", "data.eval=s3://b/x"});
  EXPECT_EQ(config.run_dir, "/r");
  EXPECT_EQ(config.data.train.path, std::vector<std::string>{"-"});
  EXPECT_EQ(config.data.eval.path, std::vector<std::string>{"s3://b/x"});
}

TEST_F(ConfigPaths, WhatWasDumpedMeansTheSameElsewhere) {
  const JobConfig config = read("run_dir: runs/a\n");
  const std::string dumped = dump_config(with_relative_paths(config));
  EXPECT_NE(dumped.find("run_dir: runs/a\nfolder: " + folder_ + "\n"), std::string::npos);
  const std::string copy = folder_ + "/deep/er/config.yaml";
  fs::create_directories(folder_ + "/deep/er");
  write_file_atomic(copy, dumped);
  ConfigOrigins origins;
  const JobConfig again = read_job(copy, {}, origins);
  EXPECT_EQ(again.run_dir, config.run_dir);
  EXPECT_EQ(again.data.train.path, config.data.train.path);
  EXPECT_EQ(dump_config(with_relative_paths(again)), dumped);
}

TEST_F(ConfigPaths, TheCopiesOfRowsOfAnEarlierRunAreNoCache) {
  JobConfig config = read("run_dir: run\n", {"embedding.store=ps", "embedding.cache.memory=1MiB"});
  std::string text = dump_config(config);
  EXPECT_EQ(text.find("policy"), std::string::npos);
  text.replace(text.find("eviction:"), 0, "policy: shared\n    ");
  write_file_atomic(folder_ + "/config.yaml", text);
  ConfigOrigins origins;
  EXPECT_THROW(read_job(folder_ + "/config.yaml", {}, origins), Error);  // a file of one's own
  fs::create_directory(folder_ + "/checkpoints");
  config = read_job(folder_ + "/config.yaml", {}, origins);
  EXPECT_FALSE(config.embedding.has_cache());
  EXPECT_EQ(dump_config(config).find("policy"), std::string::npos);
  const auto read_with = [&](const std::string& setting) {
    return read_job(folder_ + "/config.yaml", {setting}, origins);
  };
  EXPECT_TRUE(read_with("embedding.cache.memory=4MiB").embedding.has_cache());
  EXPECT_THROW(read_with("embedding.cache.policy=shared"), Error);
}

}  // namespace
}  // namespace satrap::job
