#include "src/net/counter.h"

#include <limits>

#include <gtest/gtest.h>

namespace satrap::net {
namespace {

TEST(Counter, AddsToTheNumberThatIsThere) {
  EXPECT_EQ(counter_after("40", 2), 42);
  EXPECT_EQ(counter_after("-1", -2), -3);
}

TEST(Counter, WhatIsNoNumberCountsFromZero) {
  EXPECT_EQ(counter_after("", 5), 5);
  EXPECT_EQ(counter_after("4x", 5), 5);
  EXPECT_EQ(counter_after("9223372036854775808", 5), 5);
}

TEST(Counter, WrapsAround) {
  using Limits = std::numeric_limits<std::int64_t>;
  EXPECT_EQ(counter_after("9223372036854775807", 1), Limits::min());
  EXPECT_EQ(counter_after("-9223372036854775808", -1), Limits::max());
}

}  // namespace
}  // namespace satrap::net
