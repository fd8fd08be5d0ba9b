#include "src/net/refusals.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace satrap::net {
namespace {

TEST(Refusals, AThousandAreReportedInTwoLines) {
  testing::internal::CaptureStderr();
  {
    Refusals refusals("store");
    for (int i = 1; i <= 1000; ++i) refusals.add("10.0.0.1", "reason " + std::to_string(i));
    EXPECT_EQ(refusals.num_total(), 1000);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(log, '\n'), 2) << log;
  EXPECT_NE(log.find("store: refused 10.0.0.1: reason 1\n"), std::string::npos) << log;
  EXPECT_NE(log.find("refused 999 connections (1000 in all), the last: 10.0.0.1: reason 1000\n"),
            std::string::npos)
      << log;
}

}  // namespace
}  // namespace satrap::net
