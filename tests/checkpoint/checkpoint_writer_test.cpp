#include "satrap/checkpoint/checkpoint_writer.h"

#include <chrono>
#include <filesystem>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/checkpoint/checkpoint_reader.h"
#include "tests/checkpoint/small_checkpoint.h"
#include "tests/support/temporary_directory.h"

namespace satrap::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A snapshot that cannot be written.
class FailingSnapshot final : public pipeline::RowsSnapshot {
 public:
  std::vector<ps::SnapshotFile> write(const std::string&) override {
    throw Error(ErrorCode::kIo, "the disk is full");
  }
};

/// A snapshot whose write waits for permission.
class WaitingSnapshot final : public SmallSnapshot {
 public:
  explicit WaitingSnapshot(std::future<void> let) : SmallSnapshot({}), let_(std::move(let)) {}
  std::vector<ps::SnapshotFile> write(const std::string& directory) override {
    let_.wait();
    return SmallSnapshot::write(directory);
  }

 private:
  const std::future<void> let_;
};

std::unique_ptr<CheckpointContent> failing_content(std::int64_t step) {
  auto content = small_content(step);
  content->rows = std::make_unique<FailingSnapshot>();
  return content;
}

std::unique_ptr<CheckpointContent> best_content(std::int64_t step, std::int64_t best_step) {
  auto content = small_content(step);
  content->early_stopping = EarlyStoppingState{.metric = "auc", .best_step = best_step};
  return content;
}

class CheckpointWriterTest : public testing::Test {
 protected:
  std::vector<std::string> names() const { return list_directory(folder_); }
  std::string path(std::int64_t step) const { return folder_ + "/" + checkpoint_name(step); }

  static void write(CheckpointWriter& writer, std::unique_ptr<CheckpointContent> content) {
    writer.start(std::move(content));
    writer.wait();
  }

  const TemporaryDirectory directory_;
  const std::string folder_ = directory_.path() + "/run/checkpoints";
};

TEST_F(CheckpointWriterTest, PublishesWhatItWasGiven) {
  CheckpointWriter writer(folder_, 1);
  EXPECT_THAT(names(), IsEmpty());
  write(writer, best_content(5, 5));
  EXPECT_THAT(names(), ElementsAre(checkpoint_name(5)));
  EXPECT_THAT(list_directory(path(5)),
              ElementsAre("config.yaml", "dense.bin", "manifest.json", "pending-0.bin",
                          "table-0.bin", "transforms.json"));
  const Manifest manifest = Manifest::read(path(5));
  EXPECT_EQ(manifest.step, 5);
  EXPECT_EQ(manifest.examples, 50);
  EXPECT_EQ(manifest.positions, small_content(5)->positions);
  EXPECT_EQ(manifest.early_stopping->best_step, 5);
  ASSERT_EQ(manifest.tables.size(), 1U);
  EXPECT_EQ(manifest.tables[0].name, "user");
  EXPECT_EQ(manifest.tables[0].optimizer, "sgd");
  EXPECT_EQ(manifest.tables[0].rows, 2);
  EXPECT_EQ(read_dense(path(5), manifest), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read_file(path(5) + "/table-0.bin"),
            SmallRow(7, 0.5F).bytes() + SmallRow(8, 1.5F).bytes());
  EXPECT_EQ(read_transforms(path(5)), "{}");
}

TEST_F(CheckpointWriterTest, OfNoRowsAndNoNetworkIsWholeToo) {
  CheckpointWriter writer(folder_, 1);
  auto content = small_content(0, {});
  content->dense.clear();
  write(writer, std::move(content));
  EXPECT_THAT(read_dense(path(0), Manifest::read(path(0))), IsEmpty());
  EXPECT_EQ(verify_checkpoint(path(0)).size(), 16U);
}

TEST_F(CheckpointWriterTest, KeepsTheNewestAndTheBest) {
  CheckpointWriter writer(folder_, 2);
  for (const std::int64_t step : {1, 2, 3, 4, 5}) write(writer, best_content(step, 2));
  EXPECT_THAT(names(), ElementsAre(checkpoint_name(2), checkpoint_name(4), checkpoint_name(5)));
  write(writer, best_content(6, 6));
  EXPECT_THAT(names(), ElementsAre(checkpoint_name(5), checkpoint_name(6)));
}

TEST_F(CheckpointWriterTest, OfTheSameStepTakesThePlaceOfTheFormerOne) {
  CheckpointWriter writer(folder_, 2);
  write(writer, small_content(5));
  write(writer, small_content(5, {{9, 1.0F}}));
  EXPECT_THAT(names(), ElementsAre(checkpoint_name(5)));
  EXPECT_EQ(Manifest::read(path(5)).tables[0].rows, 1);
}

TEST_F(CheckpointWriterTest, RemovesWhatAKilledRunHasLeftUnfinished) {
  publish(folder_, small_content(5));
  ensure_directory(folder_ + "/.tmp-step-000000000006/deeper");
  const CheckpointWriter writer(folder_, 1);
  EXPECT_THAT(names(), ElementsAre(checkpoint_name(5)));
}

TEST_F(CheckpointWriterTest, AFailureLeavesThePublishedOnesAndNamesTheNewest) {
  CheckpointWriter writer(folder_, 1);
  EXPECT_THAT(error_of(ErrorCode::kIo, [&] { write(writer, failing_content(4)); }),
              AllOf(HasSubstr("checkpoint of step 4 failed: the disk is full"),
                    HasSubstr("there is no earlier one")));
  EXPECT_THAT(names(), IsEmpty());
  write(writer, small_content(5));
  EXPECT_THAT(error_of(ErrorCode::kIo, [&] { write(writer, failing_content(6)); }),
              HasSubstr("the newest one is " + path(5)));
  EXPECT_THAT(names(), ElementsAre(checkpoint_name(5)));
  writer.wait();  // an error is reported once
}

TEST_F(CheckpointWriterTest, TheErrorOfOneComesOutAtTheNext) {
  CheckpointWriter writer(folder_, 1);
  writer.start(failing_content(4));
  EXPECT_THAT(error_of(ErrorCode::kIo, [&] { writer.start(small_content(5)); }),
              HasSubstr("step 4"));
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(CheckpointWriterTest, WithinItsLimitsAFailureIsAWarning) {
  CheckpointWriter writer(folder_, 5, {.max_failures = 2});
  testing::internal::CaptureStderr();
  writer.start(failing_content(4));
  writer.settle();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("warning checkpoint of step 4 failed: the disk is full"),
                    HasSubstr("the next one is tried when it is due")));
  writer.start(small_content(5));  // which ends the row of failures
  writer.start(failing_content(6));
  writer.start(failing_content(7));
  EXPECT_THAT(
      error_of(ErrorCode::kIo, [&] { writer.settle(); }),
      AllOf(HasSubstr("checkpoint of step 7 failed"), HasSubstr("the newest one is " + path(5)),
            HasSubstr("2 in a row (checkpoint.max_failures)")));
  EXPECT_THAT(names(), ElementsAre(checkpoint_name(5)));
}

TEST_F(CheckpointWriterTest, WhatFailsBeforeTheStartCountsToo) {
  CheckpointWriter writer(folder_, 5, {.max_failures = 2});
  writer.add_failure(Error(ErrorCode::kIo, "no folder"));
  writer.settle();
  writer.add_failure(Error(ErrorCode::kIo, "no folder"));
  EXPECT_THAT(error_of(ErrorCode::kIo, [&] { writer.settle(); }),
              HasSubstr("no folder; 2 in a row"));
}

TEST_F(CheckpointWriterTest, TheTimeWithoutOneHasALimit) {
  const std::chrono::seconds none(0);
  CheckpointWriter writer(folder_, 5, {.max_failures = 100, .max_unsaved = none});
  writer.start(failing_content(4));
  EXPECT_THAT(error_of(ErrorCode::kIo, [&] { writer.settle(); }),
              HasSubstr("none has been written for 0 s (checkpoint.max_unsaved)"));
}

TEST_F(CheckpointWriterTest, TheLastOneMustNotFailWhateverTheLimits) {
  CheckpointWriter writer(folder_, 5, {.max_failures = 100});
  writer.start(failing_content(4));
  EXPECT_THAT(error_of(ErrorCode::kIo, [&] { writer.wait(); }), HasSubstr("the disk is full"));
}

TEST_F(CheckpointWriterTest, AnErrorThatNobodyWaitedForIsLogged) {
  testing::internal::CaptureStderr();
  CheckpointWriter(folder_, 1).start(failing_content(4));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("the disk is full"));
}

TEST_F(CheckpointWriterTest, WritesInTheBackgroundOneAfterTheOther) {
  CheckpointWriter writer(folder_, 5);
  std::promise<void> let;
  auto content = small_content(5);
  content->rows = std::make_unique<WaitingSnapshot>(let.get_future());
  writer.start(std::move(content));  // returns, although nothing can be written
  EXPECT_FALSE(fs::exists(path(5)));
  EXPECT_TRUE(writer.is_writing_after(std::chrono::milliseconds(1)));
  std::thread next([&] { writer.start(small_content(6)); });
  let.set_value();
  next.join();
  EXPECT_TRUE(fs::exists(path(5)));
  writer.wait();
  EXPECT_FALSE(writer.is_writing_after({}));
  EXPECT_TRUE(fs::exists(path(6)));
}

TEST_F(CheckpointWriterTest, LaterOnesAreSetAsideUntilThereIsANewOne) {
  for (const std::int64_t step : {5, 6, 7}) publish(folder_, small_content(step));
  CheckpointWriter writer(folder_, 5);
  writer.set_newer_aside(7);
  EXPECT_EQ(names().size(), 3U);
  writer.set_newer_aside(5);
  EXPECT_THAT(names(), ElementsAre("abandoned-step-000000000006", "abandoned-step-000000000007",
                                   checkpoint_name(5)));
  EXPECT_THAT(error_of(ErrorCode::kIo, [&] { write(writer, failing_content(6)); }),
              HasSubstr("disk"));
  EXPECT_EQ(names().size(), 3U);
  write(writer, small_content(6));
  EXPECT_THAT(names(), ElementsAre(checkpoint_name(5), checkpoint_name(6)));
}

TEST_F(CheckpointWriterTest, AnEvaluationIsAddedToAPublishedOne) {
  CheckpointWriter writer(folder_, 1);
  write(writer, small_content(5));
  const std::string before = verify_checkpoint(path(5));
  writer.update_evaluation(5, {{"eval.auc", 0.75}}, EarlyStoppingState{.metric = "auc"});
  const Manifest manifest = Manifest::read(path(5));
  EXPECT_EQ(manifest.metrics, (std::map<std::string, double>{{"eval.auc", 0.75}}));
  EXPECT_EQ(manifest.early_stopping->metric, "auc");
  EXPECT_EQ(verify_checkpoint(path(5)), before);
  writer.update_evaluation(6, {}, {});  // there is none
  EXPECT_THAT(names(), ElementsAre(checkpoint_name(5)));
}

std::unique_ptr<CheckpointContent> content_of_two_ranks(std::int64_t step) {
  auto content = small_content(step);
  content->positions.resize(2);
  return content;
}

TEST_F(CheckpointWriterTest, OfSeveralRanksHasWhatTheOthersHaveLeft) {
  CheckpointWriter writer(folder_, 1);
  writer.prepare(5);
  write_pending(folder_, 5, 1, {{.step = 6, .read_version = 4, .pooled = {1, 2}, .mask = {1}}});
  write(writer, content_of_two_ranks(5));
  EXPECT_EQ(Manifest::read(path(5)).files.at("pending-1.bin").bytes, 4 * 8 + 3 * 4);
  EXPECT_EQ(verify_checkpoint(path(5)).size(), 16U);
}

TEST_F(CheckpointWriterTest, OfSeveralRanksFailsByNameWhereOneHasLeftNothing) {
  CheckpointWriter writer(folder_, 1);
  writer.prepare(5);
  EXPECT_THAT(error_of(ErrorCode::kIo, [&] { write(writer, content_of_two_ranks(5)); }),
              AllOf(HasSubstr("checkpoint of step 5 failed"), HasSubstr("pending-1.bin")));
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(CheckpointWriterTest, PreparingAgainForgetsWhatWasLeftBefore) {
  CheckpointWriter writer(folder_, 1);
  writer.prepare(5);
  write_pending(folder_, 5, 1, {});
  writer.prepare(5);
  EXPECT_THAT(list_directory(folder_ + "/.tmp-" + checkpoint_name(5)), IsEmpty());
}

}  // namespace
}  // namespace satrap::checkpoint
