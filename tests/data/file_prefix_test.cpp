#include "satrap/data/file_prefix.h"

#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

class ExaminePrefix : public FilesTest {
 protected:
  std::string checksum(const std::string& text) const {
    return examine_prefix(write("file", text), std::ssize(text)).checksum;
  }
};

TEST_F(ExaminePrefix, EveryByteOfASmallFileCounts) {
  const std::string text(2 * kChecksumBytes, 'a');
  for (const std::size_t at :
       {std::size_t{0}, text.size() / 2 - 1, text.size() / 2, text.size() - 1}) {
    std::string other = text;
    other[at] = 'b';
    EXPECT_NE(checksum(other), checksum(text)) << at;
  }
  EXPECT_NE(checksum(text.substr(1)), checksum(text));
}

TEST_F(ExaminePrefix, OfALargeFileTheBeginningAndTheEndCount) {
  const std::string text(3 * kChecksumBytes, 'a');
  const auto with_b_at = [&](std::int64_t at) {
    std::string other = text;
    other[static_cast<std::size_t>(at)] = 'b';
    return checksum(other);
  };
  EXPECT_NE(with_b_at(kChecksumBytes - 1), checksum(text));
  EXPECT_NE(with_b_at(2 * kChecksumBytes), checksum(text));
  EXPECT_EQ(with_b_at(kChecksumBytes), checksum(text));
}

TEST_F(ExaminePrefix, APrefixIsWhatTheFileWasBeforeItGrew) {
  const std::string before = checksum("1,a\n0,b\n");
  const std::string path = write("file", "1,a\n0,b\n1,c\n");
  EXPECT_EQ(examine_prefix(path, 8).checksum, before);
  EXPECT_NE(examine_prefix(path, 12).checksum, before);
}

TEST_F(ExaminePrefix, KnowsWhetherALineEnds) {
  const std::string path = write("file", "1,a\n0,b");
  EXPECT_TRUE(examine_prefix(path, 4).ends_line);
  EXPECT_FALSE(examine_prefix(path, 7).ends_line);
  for (const std::string& packed : {gzip("1,a"), zstd("1,a")}) {
    EXPECT_TRUE(examine_prefix(write("packed", packed), std::ssize(packed)).ends_line);
  }
}

TEST_F(ExaminePrefix, AFileThatIsShorterOrGoneIsNamed) {
  const std::string path = write("file", "12");
  EXPECT_EQ(error_of([&] { examine_prefix(path, 3); }, ErrorCode::kIo),
            "data file '" + path + "' has become shorter");
  EXPECT_TRUE(contains(error_of([&] { examine_prefix(path_of("none"), 3); }, ErrorCode::kIo),
                       "cannot open data file '" + path_of("none")));
}

}  // namespace
}  // namespace satrap::data
