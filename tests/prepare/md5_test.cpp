#include "src/prepare/md5.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "tests/support/temporary_directory.h"

namespace satrap::prepare {
namespace {

std::optional<std::string> md5_of(const std::string& text) {
  const TemporaryDirectory folder;
  write_file_atomic(folder.path() + "/file", text);
  return md5_of_file(folder.path() + "/file");
}

TEST(Md5, TextsOfTheStandard) {
  EXPECT_EQ(md5_of(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_of("abc"), "900150983cd24fb0d6963f7d28e17f72");
}

TEST(Md5, PiecesOfAFileAreOneText) {
  EXPECT_EQ(md5_of(std::string((std::size_t{1} << 20) + 17, 'x')),
            "115b376eae819dfc8430e67ef097ce90");
}

TEST(Md5, MissingFileIsAnError) { EXPECT_THROW(md5_of_file("/nonexistent"), Error); }

}  // namespace
}  // namespace satrap::prepare
