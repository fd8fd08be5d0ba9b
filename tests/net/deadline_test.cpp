#include "satrap/net/deadline.h"

#include <gtest/gtest.h>

namespace satrap::net {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using Clock = Deadline::Clock;

TEST(Deadline, OfNowHasPassed) {
  const Deadline now(Clock::now());
  EXPECT_TRUE(now.has_passed());
  EXPECT_EQ(now.remaining_ms(), 0);
  EXPECT_TRUE(Deadline::after_ms(0).has_passed());
}

TEST(Deadline, LongPastLeavesNothingAndNoLess) {
  const Deadline past(Clock::now() - hours(1));
  EXPECT_TRUE(past.has_passed());
  EXPECT_EQ(past.remaining_ms(), 0);
  EXPECT_TRUE(Deadline::after_ms(-5).has_passed());
}

TEST(Deadline, OfAnHourHasNotPassed) {
  const Deadline later = Deadline::after_ms(3'600'000);
  EXPECT_FALSE(later.has_passed());
  EXPECT_LE(later.remaining_ms(), 3'600'000);
  EXPECT_GT(later.remaining_ms(), 3'500'000);
}

TEST(Deadline, RemainingMillisecondsAreRoundedUpUntilItPasses) {
  const Deadline soon(Clock::now() + microseconds(2500));
  // A wait of the milliseconds that remain never ends before the deadline, and 0 says that it has.
  for (;;) {
    const Clock::time_point before = Clock::now();
    const std::int64_t remaining = soon.remaining_ms();
    if (remaining == 0) break;
    EXPECT_LE(remaining, 3);
    EXPECT_GE(Clock::now() + milliseconds(remaining), soon.at());
    ASSERT_LT(before, soon.at());
  }
  EXPECT_TRUE(soon.has_passed());
}

TEST(Deadline, AtMostTakesTheEarlier) {
  const Deadline hour = Deadline::after_ms(3'600'000);
  EXPECT_EQ(hour.at_most_ms(7'200'000).at(), hour.at());
  EXPECT_LE(hour.at_most_ms(1000).remaining_ms(), 1000);
  EXPECT_TRUE(hour.at_most_ms(0).has_passed());
}

TEST(Deadline, AtMostOfAPassedOneStaysPassed) {
  const Deadline past(Clock::now() - milliseconds(1));
  EXPECT_EQ(past.at_most_ms(1000).at(), past.at());
}

}  // namespace
}  // namespace satrap::net
