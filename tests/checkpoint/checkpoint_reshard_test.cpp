#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/checkpoint/checkpoint.h"
#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/table/sharding.h"
#include "tests/checkpoint/small_checkpoint.h"
#include "tests/support/temporary_directory.h"

namespace satrap::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ReshardCheckpoint : public testing::Test {
 protected:
  std::string out(const std::string& name) const { return directory_.path() + "/" + name; }
  std::string folder() const { return out("checkpoints"); }

  std::string refusal(const std::string& path, std::int64_t shards, const std::string& where) {
    return error_of(ErrorCode::kInvalidConfig, [&] { reshard_checkpoint(path, shards, where); });
  }
  std::string corruption(const std::string& path) {
    return error_of(ErrorCode::kCorrupt, [&] { reshard_checkpoint(path, 2, out("none")); });
  }

  const TemporaryDirectory directory_;
  const std::vector<SmallRow> rows_ = {{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {6, 6}, {7, 7}};
  const std::string path_ = publish(folder(), small_content(5, rows_));
};

TEST_F(ReshardCheckpoint, EachRowGoesToTheFileOfItsShard) {
  const std::string divided = reshard_checkpoint(path_, 3, out("divided"));
  EXPECT_EQ(divided, out("divided") + "/" + checkpoint_name(5));
  std::string expected[3];
  for (const SmallRow& row : rows_) {
    expected[table::shard_of(row.key(), 3)] += row.bytes();
  }
  for (const int shard : {0, 1, 2}) {
    EXPECT_EQ(read_file(concat(divided, "/table-0.shard-", shard, ".bin")), expected[shard]);
  }
  EXPECT_THAT(Manifest::read(divided).tables[0].files,
              ElementsAre("table-0.shard-0.bin", "table-0.shard-1.bin", "table-0.shard-2.bin"));
  EXPECT_EQ(verify_checkpoint(divided), verify_checkpoint(path_));
}

TEST_F(ReshardCheckpoint, AShardMayHaveNoRows) {
  const std::string empty = publish(out("empty"), small_content(6, {}));
  const std::string divided = reshard_checkpoint(empty, kMaxFilesPerTable, out("divided"));
  EXPECT_EQ(std::ssize(Manifest::read(divided).tables[0].files), kMaxFilesPerTable);
  EXPECT_EQ(verify_checkpoint(divided), verify_checkpoint(empty));
}

TEST_F(ReshardCheckpoint, EverythingElseIsCopied) {
  const std::string divided = reshard_checkpoint(path_, 2, out("divided"));
  for (const char* name : {"dense.bin", "pending-0.bin", "transforms.json", "config.yaml"}) {
    EXPECT_EQ(read_file(divided + "/" + name), read_file(path_ + "/" + name)) << name;
  }
  const Manifest before = Manifest::read(path_), after = Manifest::read(divided);
  EXPECT_EQ(after.step, before.step);
  EXPECT_EQ(after.created, before.created);
  EXPECT_EQ(after.positions, before.positions);
  EXPECT_EQ(after.metrics, before.metrics);
}

TEST_F(ReshardCheckpoint, InPlaceReplacesIt) {
  const std::string before = verify_checkpoint(path_);
  EXPECT_EQ(reshard_checkpoint(path_ + "/", 2, ""), path_);
  EXPECT_THAT(list_directory(folder()), ElementsAre(checkpoint_name(5)));
  EXPECT_EQ(Manifest::read(path_).tables[0].files.size(), 2U);
  EXPECT_EQ(verify_checkpoint(path_), before);
}

TEST_F(ReshardCheckpoint, WhatAKilledAttemptHasLeftIsInNobodysWay) {
  ensure_directory(folder() + "/.tmp-" + checkpoint_name(5) + "/deeper");
  reshard_checkpoint(path_, 2, "");
  EXPECT_THAT(list_directory(folder()), ElementsAre(checkpoint_name(5)));
}

TEST_F(ReshardCheckpoint, WhatCannotBeAskedForIsRefused) {
  EXPECT_EQ(refusal(path_, 0, ""), "--shards must be from 1 to 512, got 0");
  EXPECT_EQ(refusal(path_, 513, ""), "--shards must be from 1 to 512, got 513");
  EXPECT_EQ(refusal(path_, 2, folder()), "--out: " + path_ + " already exists");
}

TEST_F(ReshardCheckpoint, RowsThatAreNotWhatTheManifestSaysAreRefusedAndNothingIsLeft) {
  flip_a_bit(path_ + "/table-0.bin");
  EXPECT_THAT(corruption(path_), HasSubstr("table-0.bin: checksum"));
  const std::string whole = read_file(path_ + "/manifest.json");
  rewrite(path_, "table-0.bin", rows_[0].bytes() + "half a row");
  EXPECT_THAT(corruption(path_), HasSubstr("table 'user': table-0.bin has 42 bytes, rows have 32"));
  write_file_atomic(path_ + "/manifest.json", whole);
  edit_manifest(path_, [](Manifest& manifest) { manifest.tables[0].rows = 1; });
  EXPECT_THAT(corruption(path_), HasSubstr("table 'user': it has 1 rows, its files 7"));
  EXPECT_TRUE(list_directory(out("none")).empty());
  EXPECT_THAT(list_directory(folder()), ElementsAre(checkpoint_name(5)));
}

}  // namespace
}  // namespace satrap::checkpoint
