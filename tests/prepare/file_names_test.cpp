#include "src/prepare/file_names.h"

#include <gtest/gtest.h>

namespace satrap::prepare {
namespace {

TEST(FileNames, PartsAreKnownByTheirNames) {
  EXPECT_EQ(part_name("train", 7), "train-00007.txt.zst");
  EXPECT_EQ(part_name("test", 123456), "test-123456.txt.zst");
  EXPECT_TRUE(is_part_name("train-00007.txt.zst"));
  EXPECT_TRUE(is_part_name("test-123456.txt.zst"));
  for (const char* name : {"", ".txt.zst", "train.txt.zst", "train-.txt.zst", "-00007.txt.zst",
                           "train-7a.txt.zst", "train-00007.txt.zst.old", "train-00007.txt"}) {
    EXPECT_FALSE(is_part_name(name)) << name;
  }
}

TEST(FileNames, SplitsAreNoPaths) {
  EXPECT_TRUE(is_split_name("train"));
  EXPECT_TRUE(is_split_name("day_23"));
  for (const char* name : {"", ".", "..", "../other/train", "/train", "a b", "a-b", "a.b"}) {
    EXPECT_FALSE(is_split_name(name)) << name;
  }
}

TEST(FileNames, TemporaryNamesEndInTheProcess) {
  EXPECT_EQ(complete_name("prepare.json.tmp-17"), "prepare.json");
  EXPECT_EQ(complete_name("train-00007.txt.zst.17.tmp"), "train-00007.txt.zst");
  for (const char* name : {"", ".tmp", "notes", "notes.tmp", "notes.tmp-", "notes.tmp-b",
                           "notes.x.tmp", "notes.tmp-1.old", "17.tmp"}) {
    EXPECT_EQ(complete_name(name), "") << name;
  }
}

}  // namespace
}  // namespace satrap::prepare
