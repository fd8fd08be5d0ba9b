#include "src/prepare/sorted_lines.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/hash.h"
#include "tests/support/temporary_directory.h"

namespace satrap::prepare {
namespace {

struct SortedLinesTest : ::testing::Test {
  TemporaryDirectory folder;

  Request request(std::int64_t threads, const std::string& out) const {
    Request made;
    made.set = "test";
    made.out = folder.path() + "/" + out;
    made.threads = threads;
    made.memory_bytes = 1;  // the smallest runs
    return made;
  }
};

struct Line {
  SortKey key;
  std::string text;
  friend bool operator==(const Line&, const Line&) = default;
};

/// Few keys, some of them negative, so that many lines have the same.
std::vector<Line> made_lines(std::int64_t count) {
  const RandomStream random{hash64(1, 2)};
  std::vector<Line> lines;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto n = static_cast<std::uint64_t>(i);
    lines.push_back({.key = {.first = static_cast<std::int64_t>(random.below(2 * n, 5)) - 2,
                             .second = static_cast<std::int64_t>(random.below(2 * n + 1, 7))},
                     .text = "line\t" + std::to_string(i)});
  }
  return lines;
}

void add_all(LineSorter& sorter, const std::vector<Line>& lines) {
  for (const Line& line : lines) sorter.add(line.key, line.text);
}

std::vector<Line> sorted_by(const LineSorter& sorter) {
  SortedLines lines(sorter);
  std::vector<Line> sorted;
  SortKey key;
  for (std::string_view text; lines.next(key, text);) sorted.push_back({key, std::string(text)});
  return sorted;
}

TEST_F(SortedLinesTest, EqualKeysStayInTheOrderOfArrival) {
  for (const std::int64_t count : {0, 1, 2, 1000}) {
    Workspace workspace(request(2, "out" + std::to_string(count)), {});
    LineSorter sorter(workspace, "lines");
    std::vector<Line> lines = made_lines(count);
    add_all(sorter, lines);
    sorter.finish();
    std::ranges::stable_sort(lines, {}, &Line::key);
    EXPECT_EQ(sorted_by(sorter), lines);
    EXPECT_EQ(sorter.num_lines(), count);
    EXPECT_EQ(count == 1000, sorter.run_paths().size() > 8);
  }
}

TEST_F(SortedLinesTest, RunsDoNotDependOnThreads) {
  std::vector<std::string> bytes[2];
  for (const int i : {0, 1}) {
    Workspace workspace(request(1 + 3 * i, "out" + std::to_string(i)), {});
    LineSorter sorter(workspace, "lines");
    add_all(sorter, made_lines(1000));
    sorter.finish();
    for (const std::string& path : sorter.run_paths()) bytes[i].push_back(read_file(path));
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}

TEST_F(SortedLinesTest, FinishedSorterNeedsNoLinesAgain) {
  const std::vector<Line> lines = made_lines(300);
  std::vector<Line> first;
  {
    Workspace workspace(request(1, "out"), {});
    LineSorter sorter(workspace, "lines");
    add_all(sorter, lines);
    sorter.finish({{"note", 17}});
    first = sorted_by(sorter);
  }
  Workspace workspace(request(1, "out"), {});
  const LineSorter sorter(workspace, "lines");
  ASSERT_TRUE(sorter.is_finished());
  EXPECT_EQ(sorter.found()["note"], 17);
  EXPECT_EQ(sorted_by(sorter), first);
}

TEST_F(SortedLinesTest, RunsOfAKilledSorterAreKept) {
  Workspace workspace(request(1, "out"), {});
  LineSorter killed(workspace, "lines");
  add_all(killed, made_lines(500));
  const std::string run = workspace.temporary_path("lines-00000.zst");
  ASSERT_TRUE(std::filesystem::exists(run));
  const auto before = std::filesystem::last_write_time(run);
  LineSorter again(workspace, "lines");
  add_all(again, made_lines(1000));
  again.finish();
  EXPECT_EQ(std::filesystem::last_write_time(run), before);
  std::vector<Line> lines = made_lines(1000);
  std::ranges::stable_sort(lines, {}, &Line::key);
  EXPECT_EQ(sorted_by(again), lines);
}

TEST_F(SortedLinesTest, TooManyRunsAskForMoreMemory) {
  Workspace workspace(request(1, "out"), {});
  constexpr int kRuns = 5;
  const std::string text(2000, 'x');  // a run of its own
  LineSorter enough(workspace, "enough", kRuns), too_few(workspace, "too-few", kRuns - 1);
  for (int i = 0; i < kRuns; ++i) {
    enough.add({.first = i, .second = 0}, text);
    too_few.add({.first = i, .second = 0}, text);
  }
  enough.finish();
  EXPECT_THROW(too_few.finish(), Error);
}

}  // namespace
}  // namespace satrap::prepare
