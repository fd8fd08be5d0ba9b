#include "src/checkpoint/data_changes.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace satrap::checkpoint {
namespace {

using data::DataFile;
using testing::ElementsAre;
using testing::IsEmpty;

/// Files of 10 rows. The content of a file is a text that stands for its bytes; the checksum of a
/// prefix is that prefix, and "|" is the end of a line.
class DataChangesTest : public testing::Test {
 protected:
  /// Read so far: rows before 15, that is a, and half of b. The reader has opened c as well.
  DataChangesTest() {
    for (const char* name : {"a", "b", "c", "d"}) {
      put(name, std::string(name) + "0123|");
      before_.push_back(now_.back());
    }
    for (std::size_t i = 0; i < 3; ++i) open(i);
    before_[2].num_rows = -1;
  }

  /// Adds or replaces a file of now.
  void put(const std::string& path, const std::string& text) {
    contents_[path] = text;
    for (DataFile& file : now_) {
      if (file.path == path) file.bytes = std::ssize(text);
    }
    const bool is_there = std::ranges::any_of(now_, [&](auto& file) { return file.path == path; });
    if (!is_there) now_.push_back({.path = path, .bytes = std::ssize(text), .modified_ns = 1});
  }

  void open(std::size_t i) {
    before_[i].checksum = contents_[before_[i].path];
    before_[i].first_row = 10 * static_cast<std::int64_t>(i);
    before_[i].num_rows = 10;
  }

  void insert(std::size_t place, const std::string& path) {
    put(path, path + "0123|");
    std::rotate(now_.begin() + static_cast<std::ptrdiff_t>(place), now_.end() - 1, now_.end());
  }
  void remove(std::size_t place) { now_.erase(now_.begin() + static_cast<std::ptrdiff_t>(place)); }

  /// "read: text", "ahead: text", "appended: text" or "none: text" for each change.
  std::vector<std::string> changes() const {
    std::vector<std::string> shown;
    for (const DataChange& change :
         data_changes(before_, rows_read_, now_, [&](auto&&... at) { return prefix_of(at...); })) {
      constexpr const char* kNames[] = {"read: ", "ahead: ", "appended: ", "none: "};
      shown.push_back(kNames[static_cast<int>(change.kind)] + change.text);
    }
    return shown;
  }
  data::FilePrefix prefix_of(const std::string& path, std::int64_t bytes) const {
    const std::string prefix = contents_.at(path).substr(0, static_cast<std::size_t>(bytes));
    return {prefix, prefix.ends_with('|')};
  }

  std::int64_t rows_read_ = 15;
  std::vector<DataFile> before_, now_;
  std::map<std::string, std::string> contents_;
};

TEST_F(DataChangesTest, TheSameFilesHaveNone) { EXPECT_THAT(changes(), IsEmpty()); }

// ------------------------------------------------------------------------------ what was read

TEST_F(DataChangesTest, AFileBehindThePositionIsGone) {
  remove(0);
  EXPECT_THAT(changes(), ElementsAre("read: data file a (6 bytes) is gone"));
}

TEST_F(DataChangesTest, OthersWithTheSameSizeAreTold) {
  put("a", "A0123|");
  EXPECT_THAT(changes(), ElementsAre("read: data file a: other content of the same 6 bytes: "
                                     "checksum a0123| -> A0123|"));
}

TEST_F(DataChangesTest, ASmallerOneIsTold) {
  put("b", "b01");
  EXPECT_THAT(changes(), ElementsAre("read: data file b: 6 bytes -> 3 bytes"));
}

TEST_F(DataChangesTest, EachOfSeveralHasALine) {
  put("a", "b0123|");
  put("b", "a0123|");
  EXPECT_EQ(changes().size(), 2U);
}

TEST_F(DataChangesTest, AFileAddedInFrontOrAmongIsNamedWithItsFollower) {
  insert(0, "x");
  insert(2, "y");
  EXPECT_THAT(changes(), ElementsAre("read: data file y was added before b",
                                     "read: data file x was added before a"));
}

TEST_F(DataChangesTest, AnotherOrderIsTold) {
  std::swap(now_[0], now_[1]);
  EXPECT_THAT(changes(), ElementsAre("read: data file b is in another order: it came after a"));
}

TEST_F(DataChangesTest, AFileThatIsNoLongerThereTwiceIsTold) {
  before_ = {before_[0], before_[0]};
  before_[1].first_row = 10;
  now_ = {now_[0]};
  EXPECT_THAT(changes(), ElementsAre("read: data file a is no longer listed as often"));
}

TEST_F(DataChangesTest, APipeInstead) {
  now_[0].bytes = -1;
  EXPECT_THAT(changes(), ElementsAre("read: data file a: 6 bytes -> a pipe"));
}

TEST_F(DataChangesTest, NothingIsThereAnyMore) {
  now_.clear();
  EXPECT_EQ(changes().size(), 4U);
}

// ------------------------------------------------------------------------------ grown files

TEST_F(DataChangesTest, AFileBehindThePositionMayNotGrow) {
  put("a", "a0123|more|");
  EXPECT_THAT(changes(), ElementsAre("read: data file a: 6 bytes -> 11 bytes"));
}

TEST_F(DataChangesTest, TheOneAtThePositionMayGrowAtItsEnd) {
  put("b", "b0123|more|");
  EXPECT_THAT(changes(),
              ElementsAre("ahead: data file b has grown at its end: 6 bytes -> 11 bytes"));
  put("b", "B0123|more|");
  EXPECT_THAT(changes(), ElementsAre("read: data file b: 6 bytes -> 11 bytes"));
}

TEST_F(DataChangesTest, NotIfAllOfItWasReadAndAnotherFollows) {
  rows_read_ = 20;
  put("b", "b0123|more|");
  EXPECT_THAT(changes(), ElementsAre("read: data file b: 6 bytes -> 11 bytes"));
}

TEST_F(DataChangesTest, TheLastOfAllMayIfItsLastRowStays) {
  rows_read_ = 40;
  open(2);
  open(3);
  put("d", "d0123|more|");
  EXPECT_THAT(changes(),
              ElementsAre("ahead: data file d has grown at its end: 6 bytes -> 11 bytes"));
  before_[3].bytes = 5;
  before_[3].checksum = "d0123";  // without its last "|"
  EXPECT_THAT(changes(), ElementsAre("read: data file d: 5 bytes -> 11 bytes"));
}

// ------------------------------------------------------------------------------ ahead

TEST_F(DataChangesTest, AFileAheadIsGoneOrOther) {
  put("d", "d0123|and more|");
  remove(2);
  EXPECT_THAT(changes(), ElementsAre("ahead: data file c (6 bytes), not read yet, is gone",
                                     "ahead: data file d, not read yet: 6 bytes -> 15 bytes"));
}

TEST_F(DataChangesTest, OfOneThatWasOpenedTheContentCounts) {
  put("c", "C0123|");
  put("d", "D0123|");
  EXPECT_THAT(changes(),
              ElementsAre("ahead: data file c, not read yet: other content of the same 6 "
                          "bytes: checksum c0123| -> C0123|"));
}

TEST_F(DataChangesTest, AddedOrReorderedAhead) {
  insert(3, "x");
  EXPECT_THAT(changes(), ElementsAre("ahead: data file x was added among those not read yet"));
  remove(3);
  std::swap(now_[2], now_[3]);
  EXPECT_THAT(changes(), ElementsAre("ahead: data file d, not read yet, is in another order"));
}

TEST_F(DataChangesTest, BeforeTheFirstRowAllIsAhead) {
  rows_read_ = 0;
  remove(0);
  EXPECT_THAT(changes(), ElementsAre("ahead: data file a (6 bytes), not read yet, is gone"));
}

TEST_F(DataChangesTest, AppendedFilesAreNamed) {
  put("e", "e0123|");
  EXPECT_THAT(changes(), ElementsAre("appended: 1 data file appended: e"));
  for (int i = 0; i < 11; ++i) put("f" + std::to_string(i), "0|");
  EXPECT_THAT(changes(), ElementsAre("appended: 12 data files appended: e, f0, f1, f2, f3, f4, f5, "
                                     "f6, f7, f8 and 2 more"));
}

// ------------------------------------------------------------------------------ no changes

TEST_F(DataChangesTest, TheSameFilesUnderOtherPathsAreTheSame) {
  for (DataFile& file : now_) {
    contents_["new/" + file.path] = contents_[file.path];
    file.path = "new/" + file.path;
  }
  EXPECT_THAT(
      changes(),
      ElementsAre("none: 4 data files under another path, the same as far as they were read: "
                  "a -> new/a and so on"));
}

TEST_F(DataChangesTest, AnotherFileOfTheSizeOfOneThatWasNeverOpenedIsAnother) {
  insert(4, "x");
  remove(3);
  put("d", "d0123|");
  EXPECT_THAT(changes(), ElementsAre("ahead: data file x was added among those not read yet"));
}

TEST_F(DataChangesTest, AnotherTimeAloneIsToldWhereTheChecksumLeavesADoubt) {
  for (DataFile& file : now_) file.modified_ns = 2;
  EXPECT_THAT(changes(),
              ElementsAre("none: 1 data file modified or copied; size, and beginning and "
                          "end where they were read, are the same: d"));
}

TEST_F(DataChangesTest, PipesAreNotCompared) {
  before_ = {{.path = "-", .first_row = 0}};
  now_ = {{.path = "a", .bytes = 6}};
  EXPECT_THAT(changes(), ElementsAre("none: 1 data file without identity, standard input or a "
                                     "pipe, not compared: -"));
}

TEST_F(DataChangesTest, ManyOfAKindAreCounted) {
  before_.clear();
  for (int i = 0; i < 25; ++i) {
    before_.push_back({.path = std::to_string(i), .bytes = 1, .checksum = "x", .first_row = i});
  }
  rows_read_ = 25;
  now_.clear();
  const std::vector<std::string> all = changes();
  EXPECT_EQ(all.size(), 11U);
  EXPECT_EQ(all.back(), "read: and 15 more");
}

}  // namespace
}  // namespace satrap::checkpoint
