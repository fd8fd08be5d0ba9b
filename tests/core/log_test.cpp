#include "satrap/core/log.h"

#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

// Text on stderr while `action` runs.
template <class Action>
std::string stderr_of(Action action) {
  ::testing::internal::CaptureStderr();
  action();
  return ::testing::internal::GetCapturedStderr();
}

class Log : public ::testing::Test {
 protected:
  ~Log() override { set_log_level(LogLevel::kInfo); }
};

TEST_F(Log, LineHasDateTimeLevelAndMessage) {
  EXPECT_THAT(stderr_of([] { log_info("step {}: loss {:.3f}", 7, 0.5); }),
              MatchesRegex("....-..-.. ..:..:..\\.... info step 7: loss 0.500\n"));
}

TEST_F(Log, BracesInAMessageAreNoFormat) {
  EXPECT_THAT(stderr_of([] { log_message(LogLevel::kError, "{} {x}"); }), HasSubstr(" {} {x}\n"));
}

TEST_F(Log, AMessageCommandsNoTerminalAndForgesNoLine) {
  EXPECT_THAT(stderr_of([] { log_warning("got \"{}\"", "\x1B[31mRED\n2026 info é"); }),
              HasSubstr("got \"\\x1b[31mRED\\x0a2026 info é\"\n"));
}

TEST_F(Log, MessagesBelowTheLevelAreDropped) {
  set_log_level(LogLevel::kWarning);
  EXPECT_FALSE(is_logged(LogLevel::kInfo));
  EXPECT_TRUE(is_logged(LogLevel::kError));
  const std::string text = stderr_of([] {
    log_debug("a debug message");
    log_info("an info message");
    log_warning("a warning message");
    log_error("an error message");
  });
  EXPECT_THAT(text, Not(HasSubstr("debug message")));
  EXPECT_THAT(text, Not(HasSubstr("info message")));
  EXPECT_THAT(text, HasSubstr("a warning message\n"));
  EXPECT_THAT(text, HasSubstr("an error message\n"));
  set_log_level(LogLevel::kOff);
  EXPECT_THAT(stderr_of([] { log_error("an error message"); }), IsEmpty());
}

TEST_F(Log, LinesOfManyThreadsStayWhole) {
  const std::string text = stderr_of([] {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([] {
        for (int i = 0; i < 100; ++i) log_info("{}", std::string(50, 'x'));
      });
    }
  });
  std::size_t num_lines = 0;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line); ++num_lines) {
    ASSERT_TRUE(line.ends_with(" " + std::string(50, 'x'))) << line;
    ASSERT_EQ(line.find('x'), line.size() - 50) << line;
  }
  EXPECT_EQ(num_lines, 400u);
}

TEST(ParseLogLevel, KnowsTheLevelsAndRefusesTheRest) {
  EXPECT_EQ(parse_log_level("debug"), LogLevel::kDebug);
  EXPECT_EQ(parse_log_level("off"), LogLevel::kOff);
  try {
    parse_log_level("loud");
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    EXPECT_THAT(error.what(), HasSubstr("debug, info, warning, error, off; got \"loud\""));
  }
}

}  // namespace
}  // namespace satrap
