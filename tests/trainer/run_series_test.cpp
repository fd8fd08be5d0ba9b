#include "satrap/trainer/run_series.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/temporary_directory.h"

namespace satrap::trainer {
namespace {

class RunSeries : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  void add_run(const std::string& name, const std::string& series) {
    std::filesystem::create_directories(path(name));
    std::ofstream(path(name) + "/metrics.jsonl")
        << R"({"step":0,"start":{"series":")" << series << "\"}}\n{}\n";
  }

  std::string next() const { return without_folder(next_run(path("job"))); }
  std::string newest() const { return without_folder(newest_run(path("job"))); }

 private:
  std::string without_folder(const std::string& whole) const {
    return whole.substr(folder_.path().size() + 1);
  }

  TemporaryDirectory folder_;
};

TEST_F(RunSeries, TheFirstRunHasTheFolderWithoutANumber) {
  EXPECT_EQ(next(), "job");
  EXPECT_EQ(newest(), "job");
  std::filesystem::create_directories(path("job/logs"));  // not of a run
  EXPECT_EQ(next(), "job");
}

TEST_F(RunSeries, EachNextRunHasTheNumberAfterTheHighest) {
  add_run("job", "job");
  EXPECT_EQ(next(), "job-2");
  EXPECT_EQ(newest(), "job");
  for (const int number : {2, 9, 10}) add_run("job-" + std::to_string(number), "job");
  EXPECT_EQ(next(), "job-11");
  EXPECT_EQ(newest(), "job-10");
}

TEST_F(RunSeries, ARunThatWasRemovedLeavesItsNumberFree) {
  add_run("job-3", "job");
  EXPECT_EQ(next(), "job-4");  // a number that is lower would not be the newest
  EXPECT_EQ(newest(), "job-3");
}

TEST_F(RunSeries, FoldersOfOtherJobsAreNotItsRuns) {
  add_run("job", "job");
  add_run("job-2", "job");
  add_run("job-3", "job-3");  // of job-3.yaml
  add_run("job-2-2", "job-2");
  for (const std::string name : {"job-", "job-x", "job-04", "job-4x", "job-1", "job-0", "job--5",
                                 "job-99999999999999999999", "jobs-7"}) {
    add_run(name, "job");
  }
  std::filesystem::create_directories(path("job-5"));
  std::ofstream(path("job-5/metrics.jsonl")) << "[1]\n";
  EXPECT_EQ(newest(), "job-2");
  EXPECT_EQ(next(), "job-6");
}

TEST_F(RunSeries, WhatIsNoFirstFolderStays) {
  EXPECT_EQ(newest_run("s3://bucket/job"), "s3://bucket/job");
  EXPECT_EQ(newest_run(path("none/checkpoints")), path("none/checkpoints"));
  add_run("job-2", "job");
  EXPECT_EQ(newest_run(path("job/")), path("job-2"));
}

TEST(RunSeriesName, IsThatOfTheFirstFolder) { EXPECT_EQ(series_of("/a/runs/job"), "job"); }

}  // namespace
}  // namespace satrap::trainer
