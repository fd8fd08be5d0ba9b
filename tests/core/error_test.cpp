#include "satrap/core/error.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace satrap {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

std::string message_of_failed_check(int dim) {
  try {
    SATRAP_CHECK(dim > 0, "table '", "user", "': dim must be positive, got ", dim);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
    return error.what();
  }
  return "";
}

TEST(Check, PassesSilently) { EXPECT_EQ(message_of_failed_check(1), ""); }

TEST(Check, FailureNamesPlaceConditionAndValue) {
  const std::string message = message_of_failed_check(-3);
  EXPECT_THAT(message, HasSubstr("error_test.cpp:"));
  EXPECT_THAT(message, HasSubstr("check failed: dim > 0"));
  EXPECT_THAT(message, EndsWith("table 'user': dim must be positive, got -3"));
}

TEST(Check, NeedsNoMessage) {
  const bool fine = false;
  try {
    SATRAP_CHECK(fine);
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), EndsWith("check failed: fine"));
  }
}

TEST(ExitStatus, IsTwoForWhatTheUserWroteAndOneOtherwise) {
  EXPECT_EQ(exit_status(ErrorCode::kInvalidConfig), 2);
  EXPECT_EQ(exit_status(ErrorCode::kInvalidData), 1);
  EXPECT_EQ(exit_status(ErrorCode::kInternal), 1);
  EXPECT_EQ(exit_status(ErrorCode::kClosedPipe), 141);
}

}  // namespace
}  // namespace satrap
