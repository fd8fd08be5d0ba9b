#include "satrap/data/text_lines.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/data/compress.h"
#include "tests/support/temporary_directory.h"

namespace satrap::data {
namespace {

using ::testing::ElementsAre;

struct TextLinesTest : ::testing::Test {
  TemporaryDirectory folder;
  std::string path = folder.path() + "/lines.txt";

  std::vector<std::string> lines_of(const std::string& text, Compression compression) {
    std::string bytes;
    compress(compression, text, bytes);
    write_file_atomic(path, bytes);
    TextLines lines(path);
    std::vector<std::string> all;
    for (std::string_view line; lines.next(line);) all.emplace_back(line);
    EXPECT_EQ(lines.line_number(), std::ssize(all));
    EXPECT_EQ(lines.bytes_read(), std::ssize(bytes));
    return all;
  }
};

TEST_F(TextLinesTest, EndsAreLeftOutAndBlankLinesStay) {
  EXPECT_THAT(lines_of("a\tb\n\nc\r\nd", Compression::kNone), ElementsAre("a\tb", "", "c", "d"));
  EXPECT_THAT(lines_of("\n", Compression::kNone), ElementsAre(""));
}

TEST_F(TextLinesTest, LinesBeyondTheBufferAreWhole) {
  const std::string long_line(300'000, 'x');
  EXPECT_THAT(lines_of("a\n" + long_line + "\nb\n", Compression::kNone),
              ElementsAre("a", long_line, "b"));
}

TEST_F(TextLinesTest, CompressedFilesHaveTheSameLines) {
  EXPECT_THAT(lines_of("a\nb\n", Compression::kGzip), ElementsAre("a", "b"));
  EXPECT_THAT(lines_of("a\nb\n", Compression::kZstd), ElementsAre("a", "b"));
}

TEST_F(TextLinesTest, LongestLineIsLimited) {
  EXPECT_THROW(lines_of("a\n" + std::string(std::size_t{17} << 20, 'x'), Compression::kNone),
               Error);
}

TEST_F(TextLinesTest, MissingFileIsAnError) { EXPECT_THROW(TextLines lines(path), Error); }

}  // namespace
}  // namespace satrap::data
