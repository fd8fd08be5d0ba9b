#include "satrap/core/progress_line.h"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/core/terminal.h"

namespace satrap {
namespace {

// A pseudo terminal of 20 columns, and the text printed on it.
class ATerminal : public ::testing::Test {
 protected:
  ATerminal() {
    winsize size = {};
    size.ws_col = 20;
    if (openpty(&controller_, &terminal_, nullptr, nullptr, &size) != 0) {
      throw std::runtime_error("openpty");
    }
  }
  ~ATerminal() override {
    ::close(controller_);
    ::close(terminal_);
  }

  // Everything printed since the last call. The terminal itself turns "\n" into "\r\n".
  std::string printed() {
    constexpr char kEnd = '#';  // a terminal delivers in order, but not at once
    EXPECT_EQ(::write(terminal_, &kEnd, 1), 1);
    std::string text;
    for (char c; ::read(controller_, &c, 1) == 1 && c != kEnd;) text += c;
    return text;
  }

  int terminal_ = -1;

 private:
  int controller_ = -1;
};

TEST_F(ATerminal, KeepsTheProgressLineBelowTheLog) {
  Terminal terminal(terminal_, true);
  terminal.print("one\n");
  EXPECT_EQ(printed(), "one\r\n");
  terminal.set_last_line("10%");
  EXPECT_EQ(printed(), "\r\x1b[K10%");
  terminal.print("two\n");
  EXPECT_EQ(printed(), "\r\x1b[Ktwo\r\n10%");
  terminal.set_last_line("20%");
  EXPECT_EQ(printed(), "\r\x1b[K20%");
  terminal.set_last_line("");
  EXPECT_EQ(printed(), "\r\x1b[K");
  terminal.print("three\n");
  EXPECT_EQ(printed(), "three\r\n");
}

TEST_F(ATerminal, ProgressLineIsCutToItsWidthInCharacters) {
  Terminal terminal(terminal_, true);
  terminal.set_last_line("0123456789012345678901234");
  EXPECT_EQ(printed(), "\r\x1b[K0123456789012345678");
  std::string blocks;
  for (int i = 0; i < 30; ++i) blocks += "\u2588";
  terminal.set_last_line(blocks);
  EXPECT_EQ(printed(), "\r\x1b[K" + blocks.substr(0, 19 * 3));
}

TEST_F(ATerminal, ThatIsNoneGetsNoProgressLine) {
  Terminal file(terminal_, false);
  file.set_last_line("10%");
  EXPECT_EQ(printed(), "");
  file.print("one\n");
  EXPECT_EQ(printed(), "one\r\n");
}

TEST(ProgressLine, IsVisibleOnlyWhereStderrIsATerminal) {
  ::testing::internal::CaptureStderr();
  bool visible = false;
  {
    ProgressLine line;
    line.show("10%");
    visible = line.is_visible();
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(text, visible ? "\r\x1b[K10%\r\x1b[K" : "");
}

}  // namespace
}  // namespace satrap
