#include "src/data/text/line_cutter.h"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/data/files/file_list.h"
#include "src/data/files/file_records.h"
#include "src/data/text/column_map.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LineCutterTest : public FilesTest {
 protected:
  LineCutterTest() { config_ = csv_config("none.csv", {}, {"s"}); }

  /// One block: "first row @ line of the file: text".
  static std::string show(const TextBlock& block) {
    return concat(block.first_row, " @ ", block.file_line, ": ",
                  std::string(block.text_begin(), block.text_end()));
  }

  std::vector<std::string> blocks_of(const std::vector<std::string>& paths,
                                     const RowPass& pass = {},
                                     LineCutter::Limits limits = {}) {
    const Schema schema = resolve_schema(config_);
    LineCutter cutter(schema, paths, pass, limits);
    TextBlock block;
    std::vector<std::string> shown;
    while (cutter.next(block)) {
      const auto newlines = std::count(block.text_begin(), block.text_end(), '\n');
      EXPECT_EQ(block.num_lines, newlines);
      shown.push_back(show(block));
    }
    EXPECT_FALSE(cutter.next(block));
    return shown;
  }

  DataConfig config_;
};

TEST_F(LineCutterTest, AFileIsItsLinesWithoutTheHeader) {
  EXPECT_THAT(blocks_of({write("a.csv", "y,s\n1,a\n0,b\n")}), ElementsAre("0 @ 2: 1,a\n0,b\n"));
}

TEST_F(LineCutterTest, ALastLineWithoutItsEndGetsOne) {
  EXPECT_THAT(blocks_of({write("a.csv", "y,s\n1,a\n0,b")}), ElementsAre("0 @ 2: 1,a\n0,b\n"));
}

TEST_F(LineCutterTest, ABlockEndsWithTheTurnOfAStream) {
  const std::string path = write("a.csv", "y,s\n1,a\n0,b\n1,c\n0,d\n1,e\n0,f\n1,g");
  RowPass pass;
  pass.split.stream = {.number = 0, .count = 2, .rows_per_turn = 2};
  EXPECT_THAT(blocks_of({path}, pass),
              ElementsAre("0 @ 2: 1,a\n0,b\n", "2 @ 4: 1,c\n0,d\n1,e\n0,f\n"));
  pass.split.stream.number = 1;
  EXPECT_THAT(blocks_of({path, path}, pass),
              ElementsAre("0 @ 2: 1,a\n0,b\n1,c\n0,d\n", "4 @ 6: 1,e\n0,f\n1,g\n", "7 @ 2: 1,a\n",
                          "8 @ 3: 0,b\n1,c\n0,d\n1,e\n"));
}

TEST_F(LineCutterTest, RecordsHaveTheRowsOfEachFileWhateverTheBlocks) {
  const std::vector<std::string> paths = {write("a.csv", "y,s\n1,a\n0,b\n1,c"),
                                          write("b.csv", "y,s\n"), write("c.csv", "y,s\n0,d\n")};
  const Schema schema = resolve_schema(config_);
  for (const std::int64_t block_bytes : {5, 7, 1000}) {
    const auto records = std::make_shared<FileRecords>(list_files(paths).files);
    LineCutter cutter(schema, paths, {}, {.block_bytes = block_bytes}, records);
    TextBlock block;
    ASSERT_TRUE(cutter.next(block));
    EXPECT_TRUE(records->files()[0].was_opened());
    EXPECT_FALSE(records->files()[1].was_opened());
    while (cutter.next(block)) continue;
    std::vector<std::int64_t> rows;
    for (const DataFile& file : records->files()) {
      rows.insert(rows.end(), {file.first_row, file.num_rows});
    }
    EXPECT_THAT(rows, ElementsAre(0, 3, 3, 0, 3, 1)) << block_bytes;
  }
}

TEST_F(LineCutterTest, AHeaderAloneHasNoRows) {
  EXPECT_TRUE(blocks_of({write("a.csv", "y,s\n")}).empty());
  EXPECT_TRUE(blocks_of({}).empty());
}

TEST_F(LineCutterTest, RowsAreNumberedOverAllFilesAndLinesByTheirFile) {
  EXPECT_THAT(blocks_of({write("a.csv", "y,s\n1,a\n0,b\n"), write("b.csv", "s,y\nc,1\n")}),
              ElementsAre("0 @ 2: 1,a\n0,b\n", "2 @ 2: c,1\n"));
}

TEST_F(LineCutterTest, EveryFileHasTheColumnsOfItsOwnHeader) {
  const Schema schema = resolve_schema(config_);
  LineCutter cutter(schema, {write("a.csv", "y,s\n1,a\n"), write("b.csv", "s,y\nc,1\n")}, {}, {});
  TextBlock block;
  ASSERT_TRUE(cutter.next(block));
  EXPECT_EQ(block.layout->columns()[0].name, "y");
  EXPECT_THAT(*block.file, HasSubstr("a.csv"));
  ASSERT_TRUE(cutter.next(block));
  EXPECT_EQ(block.layout->columns()[0].name, "s");
  EXPECT_THAT(*block.file, HasSubstr("b.csv"));
  EXPECT_EQ(cutter.bytes_read(), 16);
}

TEST_F(LineCutterTest, AByteOrderMarkIsNoText) {
  EXPECT_THAT(blocks_of({write("a.csv", "\xEF\xBB\xBFy,s\n1,a\n")}), ElementsAre("0 @ 2: 1,a\n"));
}

TEST_F(LineCutterTest, WithoutAHeaderTheFirstLineThatIsNotBlankGivesTheColumns) {
  config_.schema.header = false;
  config_.schema.columns = {"y", "s"};
  EXPECT_THAT(blocks_of({write("a.csv", "\n\r\n1,a\n")}), ElementsAre("0 @ 1: \n\r\n1,a\n"));
  config_.schema.columns = {};
  config_.schema.label.column = "2";
  EXPECT_THAT(error_of([&] { blocks_of({write("b.csv", "\n1,a\n")}); }, ErrorCode::kInvalidConfig),
              HasSubstr("b.csv:2: the label reads column '2'"));
}

TEST_F(LineCutterTest, AnEmptyFileHasNoRows) {
  const std::vector<std::string> paths = {write("a.csv.gz", gzip("")), write("b.csv", "y,s\n1,a\n"),
                                          write("c.csv", "\xEF\xBB\xBF"),
                                          write("d.csv", "y,s\n0,b\n")};
  EXPECT_EQ(blocks_of(paths), blocks_of({paths[1], paths[3]}));
}

TEST_F(LineCutterTest, ALineBeyondTheLimitIsAnErrorWithItsPlace) {
  const std::string path = write("a.csv", "y,s\n1,a\n1," + std::string(100, 'a') + "\n");
  const LineCutter::Limits limits{.block_bytes = 8, .line_bytes = 50};
  EXPECT_THAT(error_of([&] { blocks_of({path}, {}, limits); }),
              HasSubstr("a.csv:3: no end of line in "));
  const LineCutter::Limits longer{.block_bytes = 8, .line_bytes = 200};
  EXPECT_EQ(blocks_of({path}, {}, longer).size(), 2U);
}

TEST_F(LineCutterTest, RowsOutsideThePassAreSkippedBlockByBlock) {
  const std::string path = write("a.csv", "y,s\n1,a\n1,b\n1,c\n1,d\n1,e\n1,f\n");
  const LineCutter::Limits one_line{.block_bytes = 5};
  EXPECT_THAT(blocks_of({path}, {.first_row = 2, .max_rows = 4}, one_line),
              ElementsAre("2 @ 4: 1,c\n", "3 @ 5: 1,d\n"));
  const RowSplit second{.rank = 1, .world_size = 3, .rows_per_turn = 1};
  EXPECT_THAT(blocks_of({path}, {.split = second}, one_line),
              ElementsAre("1 @ 3: 1,b\n", "4 @ 6: 1,e\n"));
}

TEST_F(LineCutterTest, CancelledItIsAtTheEnd) {
  const Schema schema = resolve_schema(config_);
  LineCutter cutter(schema, {write("a.csv", "y,s\n1,a\n0,b\n")}, {}, {.block_bytes = 5});
  TextBlock block;
  ASSERT_TRUE(cutter.next(block));
  cutter.cancel();
  EXPECT_FALSE(cutter.next(block));
}

TEST_F(LineCutterTest, BlocksOfAnySizeTogetherAreTheFile) {
  std::mt19937_64 random(1);
  for (int file = 0; file < 60; ++file) {
    std::string rows;
    for (std::uint64_t i = random() % 40; i-- > 0;) {
      rows += random() % 6 == 0 ? "\n" : "1," + std::string(random() % 30, 'x') + "\n";
    }
    const LineCutter::Limits limits{.block_bytes = static_cast<std::int64_t>(random() % 64 + 5)};
    const Schema schema = resolve_schema(config_);
    LineCutter cutter(schema, {write("random.csv", "y,s\n" + rows)}, {}, limits);
    std::string together;
    TextBlock block;
    while (cutter.next(block)) {
      const auto lines_before = std::count(together.begin(), together.end(), '\n');
      ASSERT_EQ(block.first_row, lines_before);
      ASSERT_EQ(block.file_line, lines_before + 2);
      together.append(block.text_begin(), block.text_end());
      ASSERT_EQ(together.back(), '\n');
    }
    ASSERT_EQ(together, rows) << limits.block_bytes;
  }
}

TEST(CountNewlines, AreCountedLikeAnyOtherByte) {
  std::mt19937_64 random(1);
  for (const std::size_t size : {0U, 1U, 63U, 64U, 65U, 1000U, 64U * 255, 64U * 256 + 7}) {
    std::string text(size, '\n');
    EXPECT_EQ(count_newlines(text.data(), text.data() + size), static_cast<std::int64_t>(size));
    for (char& c : text) c = random() % 3 == 0 ? '\n' : static_cast<char>(random());
    EXPECT_EQ(count_newlines(text.data(), text.data() + size),
              std::count(text.begin(), text.end(), '\n'));
  }
}

}  // namespace
}  // namespace satrap::data
