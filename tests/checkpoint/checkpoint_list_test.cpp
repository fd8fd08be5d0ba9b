#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/checkpoint/checkpoint.h"
#include "satrap/checkpoint/checkpoint_reader.h"
#include "tests/checkpoint/small_checkpoint.h"
#include "tests/support/temporary_directory.h"

namespace satrap::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CheckpointList : public testing::Test {
 protected:
  std::string folder() const { return run_.path() + "/checkpoints"; }

  const TemporaryDirectory run_;
};

TEST_F(CheckpointList, IsEmptyWhereThereAreNone) {
  EXPECT_THAT(checkpoint_paths(run_.path()), IsEmpty());
  EXPECT_THAT(checkpoint_paths(run_.path() + "/nowhere"), IsEmpty());
  EXPECT_EQ(find_checkpoint(run_.path()), "");
  EXPECT_THAT(list_checkpoints(run_.path()), IsEmpty());
  ensure_directory(folder());
  EXPECT_THAT(list_checkpoints(run_.path()), IsEmpty());
}

TEST_F(CheckpointList, IsTheSameOfARunAndOfItsCheckpointsOldestFirst) {
  const std::string second = publish(folder(), small_content(12));
  const std::string first = publish(folder(), small_content(5));
  for (const std::string& directory : {run_.path(), run_.path() + "/", folder(), folder() + "/"}) {
    EXPECT_THAT(checkpoint_paths(directory), ElementsAre(first, second)) << directory;
    EXPECT_EQ(find_checkpoint(directory), second);
  }
}

TEST_F(CheckpointList, OfACheckpointIsItself) {
  const std::string path = publish(folder(), small_content(5));
  publish(folder(), small_content(6));
  EXPECT_THAT(checkpoint_paths(path), ElementsAre(path));
  EXPECT_THAT(checkpoint_paths(path + "/"), ElementsAre(path));
  EXPECT_EQ(find_checkpoint(path), path);
}

TEST_F(CheckpointList, HasNothingButPublishedOnes) {
  const std::string path = publish(folder(), small_content(5));
  for (const char* name :
       {".tmp-step-000000000006", "abandoned-step-000000000007", "other", "step-abc", "step-",
        "step-7", "step-000000000007-copy", "step--00000000007"}) {
    ensure_directory(folder() + "/" + name);
  }
  write_file_atomic(folder() + "/step-file", "");
  EXPECT_THAT(checkpoint_paths(run_.path()), ElementsAre(path));
}

TEST_F(CheckpointList, ACopyUnderAnyNameIsACheckpointWhereItIsNamed) {
  const std::string path = publish(folder(), small_content(5)), copy = run_.path() + "/best";
  std::filesystem::copy(path, copy);
  EXPECT_THAT(checkpoint_paths(copy), ElementsAre(copy));
  EXPECT_EQ(verify_checkpoint(copy), verify_checkpoint(path));
}

TEST_F(CheckpointList, OneUnderTheNameOfAnotherStepIsDamaged) {
  const std::string path = publish(folder(), small_content(5));
  const std::string renamed = folder() + "/step-000000000999";
  std::filesystem::rename(path, renamed);
  EXPECT_THAT(error_of(ErrorCode::kCorrupt, [&] { verify_checkpoint(renamed); }),
              HasSubstr("the checkpoint is of step 5, its folder says otherwise: rename that to "
                        "step-000000000005"));
}

TEST_F(CheckpointList, SaysOfEachWhereItStandsAndHowLargeItIs) {
  auto content = small_content(5);
  content->positions = {{.epoch = 2, .batches = 3}, {.epoch = 2, .batches = 5}};
  CheckpointWriter writer(folder(), 1);
  writer.prepare(5);
  write_pending(folder(), 5, 1, {});
  writer.start(std::move(content));
  writer.wait();
  const std::vector<CheckpointInfo> all = list_checkpoints(run_.path());
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].step, 5);
  EXPECT_EQ(all[0].epoch, 2);
  EXPECT_EQ(all[0].batches, 10);  // of one rank
  EXPECT_EQ(all[0].examples, 50);
  EXPECT_EQ(all[0].rows, 2);
  EXPECT_EQ(all[0].metrics, (std::map<std::string, double>{{"train.loss", 0.25}}));
  EXPECT_EQ(all[0].problem, "");
  std::int64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(all[0].path)) {
    if (file.path().filename() == kManifestFile) continue;
    bytes += static_cast<std::int64_t>(file.file_size());
  }
  EXPECT_EQ(all[0].bytes, bytes);
}

TEST_F(CheckpointList, HasADamagedOneWithItsProblem) {
  const std::string path = publish(folder(), small_content(5));
  publish(folder(), small_content(6));
  flip_a_bit(path + "/" + kManifestFile);
  const std::vector<CheckpointInfo> all = list_checkpoints(run_.path());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].path, path);
  EXPECT_THAT(all[0].problem, HasSubstr(path + "/manifest.json"));
  EXPECT_EQ(all[1].problem, "");
}

TEST_F(CheckpointList, MarksTheBestOneAsTheNewestKnowsIt) {
  publish(folder(), small_content(4));
  auto content = small_content(5);  // claims to be the best itself
  content->early_stopping = EarlyStoppingState{.metric = "auc", .best_step = 5};
  publish(folder(), std::move(content));
  content = small_content(6);
  content->early_stopping = EarlyStoppingState{.metric = "auc", .best_step = 4};
  publish(folder(), std::move(content));
  const std::vector<CheckpointInfo> all = list_checkpoints(run_.path());
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].best_of, "auc");
  EXPECT_EQ(all[1].best_of, "");
  EXPECT_EQ(all[2].best_of, "");
}

}  // namespace
}  // namespace satrap::checkpoint
