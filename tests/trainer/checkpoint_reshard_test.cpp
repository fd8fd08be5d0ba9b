#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/checkpoint/checkpoint.h"
#include "satrap/checkpoint/checkpoint_format.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/trainer/trainer.h"
#include "tests/trainer/tiny_cluster.h"
#include "tests/trainer/tiny_job.h"

namespace satrap::trainer {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

/// A deterministic hybrid run with lookups ahead, stopped halfway.
class Reshard : public testing::Test {
 protected:
  void SetUp() override {
    config_.train.max_steps = 15;
    checkpoint_ = train(config_, {}).last_checkpoint;
    config_.train.max_steps = 0;
  }

  std::string out(const std::string& name) const { return directory_.path() + "/" + name; }

  /// Digest at the end of a run that continues from `checkpoint`.
  std::string continued(const std::string& checkpoint, const std::string& name) {
    config_.run_dir = out(name);
    return checkpoint::verify_checkpoint(
        train(config_, {.resume_from = checkpoint}).last_checkpoint);
  }

  static std::int64_t bytes_of(const std::string& checkpoint) {
    return checkpoint::list_checkpoints(checkpoint).front().bytes;
  }

  std::string error_of(const std::string& checkpoint,
                       std::int64_t shards,
                       const std::string& where,
                       ErrorCode code) {
    try {
      checkpoint::reshard_checkpoint(checkpoint, shards, where);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return "no error";
  }

  TemporaryDirectory directory_;
  job::JobConfig config_ = tiny_job(directory_.path() + "/run");
  std::string checkpoint_;
};

TEST_F(Reshard, TheContentStaysTheSameForAnyNumberOfShards) {
  const std::string digest = checkpoint::verify_checkpoint(checkpoint_);
  const std::int64_t bytes = bytes_of(checkpoint_);
  std::string last = checkpoint_;
  for (const std::int64_t shards : {4, 3, 1}) {
    last = checkpoint::reshard_checkpoint(last, shards, out(concat("of-", shards)));
    EXPECT_EQ(checkpoint::verify_checkpoint(last), digest) << shards << " shards";
    EXPECT_EQ(bytes_of(last), bytes) << shards << " shards";
  }
  EXPECT_TRUE(fs::exists(checkpoint_)) << "the first one is still there";
}

// Shards own ranges of ids, and files are in the order of smaller ranges.
TEST_F(Reshard, ThereAndBackGivesTheSameFiles) {
  const std::string divided = checkpoint::reshard_checkpoint(checkpoint_, 4, out("divided"));
  const std::string back = checkpoint::reshard_checkpoint(divided, 1, out("back"));
  for (const auto& [name, file] : checkpoint::Manifest::read(checkpoint_).files) {
    EXPECT_EQ(read_file(back + "/" + name), read_file(checkpoint_ + "/" + name)) << name;
  }
  EXPECT_EQ(read_file(back + "/manifest.json"), read_file(checkpoint_ + "/manifest.json"));
}

TEST_F(Reshard, FilesAreThoseThatShardsWouldHaveWritten) {
  config_.train.max_steps = 15;
  config_.run_dir = out("shards");
  const std::string written = TinyCluster(config_, 3, 1).train().last_checkpoint;
  const std::string resharded = checkpoint::reshard_checkpoint(checkpoint_, 3, out("resharded"));
  const auto names = [](const std::string& path) {
    return checkpoint::Manifest::read(path).tables[2].files;
  };
  EXPECT_EQ(names(resharded), names(written));
  for (const std::string& name : names(written)) {
    EXPECT_EQ(fs::file_size(resharded + "/" + name), fs::file_size(written + "/" + name)) << name;
  }
}

TEST_F(Reshard, TrainingGoesOnWithTheSameBits) {
  const std::string expected = continued(checkpoint_, "plain");
  const std::string resharded = checkpoint::reshard_checkpoint(checkpoint_, 5, out("resharded"));
  EXPECT_EQ(continued(resharded, "embedded"), expected);
  config_.run_dir = out("on-shards");
  const TrainOutcome outcome = TinyCluster(config_, 2, 1).train({.resume_from = resharded});
  EXPECT_EQ(checkpoint::verify_checkpoint(outcome.last_checkpoint), expected);
}

TEST_F(Reshard, InPlaceReplacesItAndLeavesNothingElse) {
  const std::string digest = checkpoint::verify_checkpoint(checkpoint_);
  EXPECT_EQ(checkpoint::reshard_checkpoint(checkpoint_ + "/", 2, ""), checkpoint_);
  EXPECT_EQ(checkpoint::verify_checkpoint(checkpoint_), digest);
  EXPECT_THAT(checkpoint::Manifest::read(checkpoint_).tables[0].files,
              ElementsAre("table-0.shard-0.bin", "table-0.shard-1.bin"));
  EXPECT_FALSE(fs::exists(checkpoint_ + "/table-0.bin"));
  EXPECT_THAT(list_directory(fs::path(checkpoint_).parent_path()),
              ElementsAre(fs::path(checkpoint_).filename().string()));
}

TEST_F(Reshard, ADamagedFileIsRefusedByNameAndNothingIsChanged) {
  const std::string file = checkpoint_ + "/table-1.bin";
  std::string content = read_file(file);
  content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 1);
  write_file_atomic(file, content);
  EXPECT_THAT(error_of(checkpoint_, 2, "", ErrorCode::kCorrupt),
              HasSubstr("table-1.bin: checksum"));
  EXPECT_EQ(list_directory(fs::path(checkpoint_).parent_path()).size(), 1U);
  EXPECT_EQ(checkpoint::Manifest::read(checkpoint_).tables[0].files.size(), 1U);
}

TEST_F(Reshard, WhatCannotBeAskedForIsRefused) {
  EXPECT_THAT(error_of(checkpoint_, 0, "", ErrorCode::kInvalidConfig), HasSubstr("--shards"));
  EXPECT_THAT(error_of(checkpoint_, 513, "", ErrorCode::kInvalidConfig), HasSubstr("513"));
  const std::string same = fs::path(checkpoint_).parent_path();
  EXPECT_THAT(error_of(checkpoint_, 2, same, ErrorCode::kInvalidConfig), HasSubstr(checkpoint_));
  EXPECT_THAT(error_of(checkpoint_ + "x", 2, "", ErrorCode::kCorrupt), HasSubstr("manifest.json"));
}

}  // namespace
}  // namespace satrap::trainer
