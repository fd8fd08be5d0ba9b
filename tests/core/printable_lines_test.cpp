#include "satrap/core/printable_lines.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace satrap {
namespace {

TEST(PrintableLines, LineEndsAndTabsStay) {
  for (const char* text : {"", "\n", "a\tb\n\n größer ≥ 2", "\t\ta"}) {
    EXPECT_EQ(printable_lines(text), text);
  }
}

TEST(PrintableLines, NothingElseCommandsATerminal) {
  EXPECT_EQ(printable_lines("a\x1B[2J\tb\r\n\xC2\x9B"
                            "31m\n\xFF"),
            "a\\x1b[2J\tb\\x0d\n\\xc2\\x9b31m\n\\xff");
}

TEST(PrintableLines, APseudoTerminalIsATerminalAndAFileIsNone) {
  const int fd = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(fd, 0);
  std::FILE* const terminal = ::fdopen(fd, "w");
  EXPECT_TRUE(is_terminal(terminal));
  std::fclose(terminal);
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_FALSE(is_terminal(file));
  std::fclose(file);
}

}  // namespace
}  // namespace satrap
