#include "satrap/checkpoint/data_continuation.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/data/file_prefix.h"
#include "satrap/data/open_rows.h"
#include "tests/checkpoint/small_checkpoint.h"
#include "tests/support/temporary_directory.h"

namespace satrap::checkpoint {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A checkpoint after row 50 of two files of 40 rows.
class CompareData : public testing::Test {
 protected:
  CompareData() {
    config_.train.path = {path("a.csv"), path("b.csv")};
    write("a.csv", "the first\n");
    write("b.csv", "the second\n");
    auto content = small_content(5);
    content->positions = {{.batches = 5, .next_row = 50, .rows_read = 50}};
    content->data_files = data().training_files();
    for (std::int64_t first_row = 0; data::DataFile & file : content->data_files) {
      file.checksum = data::examine_prefix(file.path, file.bytes).checksum;
      file.first_row = first_row;
      file.num_rows = 40;
      first_row += 40;
    }
    checkpoint_ = publish(directory_.path() + "/checkpoints", std::move(content));
  }

  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    write_file_atomic(path(name), text);
  }
  data::Dataset data() const { return data::Dataset(config_, {.first_eval_row = first_eval_row_}); }
  DataContinuation compare(bool accepts = false, bool logs = true) {
    testing::internal::CaptureStderr();
    const DataContinuation result = compare_data(checkpoint_, data(), accepts, logs);
    log_ = testing::internal::GetCapturedStderr();
    return result;
  }
  std::string problems() {
    return error_of(ErrorCode::kInvalidConfig, [&] { compare(); });
  }

  const TemporaryDirectory directory_;
  data::DataConfig config_ = small_job().data;
  std::int64_t first_eval_row_ = -1;
  std::string checkpoint_, log_;
};

TEST_F(CompareData, TheSameFilesAreTheSameInput) {
  EXPECT_TRUE(compare().has_same_input());
  EXPECT_EQ(log_, "");
}

TEST_F(CompareData, AChangeOfWhatWasReadIsRefusedWithTheWayOn) {
  write("a.csv", "The first\n");
  EXPECT_THAT(
      problems(),
      AllOf(HasSubstr("cannot continue from " + checkpoint_ +
                      " with other training data: data file " + path("a.csv")),
            HasSubstr("to continue at row 50 of epoch 1 of the data as they are now, whatever "
                      "has been trained on: --accept-changed-data")));
  testing::internal::GetCapturedStderr();
}

TEST_F(CompareData, AcceptedItIsAWarningAndAnotherInput) {
  std::filesystem::remove(path("a.csv"));
  config_.train.path.erase(config_.train.path.begin());
  EXPECT_FALSE(compare(true).has_same_input());
  EXPECT_THAT(log_, AllOf(HasSubstr("warning accepted: data file " + path("a.csv") +
                                    " (10 bytes) is gone\n"),
                          HasSubstr("warning continuing at row 50 of epoch 1")));
}

TEST_F(CompareData, WhatIsAheadIsToldAndAnotherInput) {
  write("b.csv", "the second\nand more\n");
  write("c.csv", "the third\n");
  config_.train.path.push_back(path("c.csv"));
  EXPECT_EQ(compare().changes.size(), 2U);
  EXPECT_THAT(log_, AllOf(HasSubstr("info changed: data file " + path("b.csv") + " has grown"),
                          HasSubstr("info 1 data file appended: " + path("c.csv"))));
}

TEST_F(CompareData, OtherRanksSayNothing) {
  write("b.csv", "the second\nand more\n");
  EXPECT_EQ(compare(false, false).changes.size(), 1U);
  EXPECT_EQ(log_, "");
}

TEST_F(CompareData, ARankThatSeesOtherChangesReadsOtherFiles) {
  const DataContinuation mine{.changes = {"data file a has grown"}};
  EXPECT_NO_THROW(require_same_changes(mine, {"data file a has grown"}, 1));
  EXPECT_EQ(error_of(ErrorCode::kInvalidConfig, [&] { require_same_changes(mine, {}, 1); }),
            "rank 1 sees other training files than rank 0, since the checkpoint: data file a has "
            "grown; rank 0: no such change; all ranks must read the same files");
}

TEST_F(CompareData, FilesAheadMustStayIfAnEarlierEpochTrainedOnAPartOfTheirRows) {
  edit_manifest(checkpoint_, [](Manifest& manifest) {
    manifest.positions[0] = {.epoch = 1, .batches = 3, .next_row = 30, .rows_read = 30};
  });
  write("b.csv", "the other\nand more\n");
  EXPECT_EQ(compare().changes.size(), 1U);
  config_.eval.fraction = 0.1;
  config_.eval.by = "hash";
  EXPECT_THAT(problems(), HasSubstr("with other training data: data file " + path("b.csv")));
  testing::internal::GetCapturedStderr();
}

TEST_F(CompareData, ATailForEvaluationBeginsBehindTheRowsThatWereTrainedOn) {
  edit_manifest(checkpoint_, [](Manifest& manifest) { manifest.first_eval_row = 70; });
  config_.eval.fraction = 0.1;
  for (const std::int64_t first_row : {70, 60, 50}) {
    first_eval_row_ = first_row;
    EXPECT_NO_THROW(compare());
  }
  first_eval_row_ = 49;
  EXPECT_THAT(problems(), HasSubstr("data.eval keeps the rows from 49 on for evaluation, and those "
                                    "before 50 have been trained on"));
  testing::internal::GetCapturedStderr();
  EXPECT_NO_THROW(compare(true));
  edit_manifest(checkpoint_, [](Manifest& manifest) { manifest.positions[0].epoch = 1; });
  first_eval_row_ = 69;  // the first epoch has trained on all before 70
  EXPECT_THAT(problems(), HasSubstr("those before 70 have been trained on"));
  testing::internal::GetCapturedStderr();
}

TEST_F(CompareData, WithoutARecordNothingIsComparedAndThatIsSaid) {
  write("a.csv", "The first\n");
  edit_manifest(checkpoint_, [](Manifest& manifest) { manifest.files.erase(kDataFile); });
  EXPECT_TRUE(compare().has_same_input());
  EXPECT_THAT(log_, HasSubstr("the training files are not compared: " + checkpoint_));
}

TEST_F(CompareData, GeneratedRowsHaveNothingToCompare) {
  config_ = {};
  config_.format = data::DataFormat::kSynthetic;
  EXPECT_TRUE(compare().has_same_input());
  EXPECT_EQ(log_, "");
}

TEST_F(CompareData, AReshardedCheckpointKeepsTheRecord) {
  checkpoint_ = reshard_checkpoint(checkpoint_, 2, directory_.path() + "/resharded");
  write("a.csv", "The first\n");
  EXPECT_THAT(problems(), HasSubstr(path("a.csv")));
  testing::internal::GetCapturedStderr();
}

TEST_F(CompareData, ADamagedRecordIsRefused) {
  flip_a_bit(checkpoint_ + "/" + kDataFile);
  EXPECT_THAT(
      error_of(ErrorCode::kCorrupt, [&] { compare_data(checkpoint_, data(), false, false); }),
      HasSubstr("data.json: checksum"));
}

TEST_F(CompareData, AShuffledPositionIsTheNumberOfBatches) {
  edit_manifest(checkpoint_, [](Manifest& manifest) { manifest.positions[0].next_row = 0; });
  write("a.csv", "The first\n");
  EXPECT_THAT(problems(), HasSubstr("to continue after batch 5 of epoch 1"));
  testing::internal::GetCapturedStderr();
}

TEST_F(CompareData, TheRecordDoesNotDefineTheContent) {
  const std::string digest = verify_checkpoint(checkpoint_);
  edit_manifest(checkpoint_, [](Manifest& manifest) { manifest.files.erase(kDataFile); });
  EXPECT_EQ(verify_checkpoint(checkpoint_), digest);
}

}  // namespace
}  // namespace satrap::checkpoint
