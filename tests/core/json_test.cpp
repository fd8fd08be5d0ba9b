#include "satrap/core/json.h"

#include <limits>

#include <gtest/gtest.h>

namespace satrap {
namespace {

using nlohmann::json;

template <class T>
bool is_refused(const char* text) {
  try {
    integer_of<T>(json::parse(text));
    return false;
  } catch (const json::exception&) {
    return true;
  }
}

TEST(JsonInteger, IsTakenUpToTheEndsOfItsType) {
  EXPECT_EQ(integer_of<std::int64_t>(json::parse("-9223372036854775808")),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(integer_of<std::uint64_t>(json::parse("18446744073709551615")),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(integer_of<std::int32_t>(json::parse("-7")), -7);
  EXPECT_EQ(integer_at(json::parse(R"({"step": 5})"), "step"), 5);
}

TEST(JsonInteger, WhatTheTypeDoesNotHoldIsRefused) {
  EXPECT_TRUE(is_refused<std::int64_t>("9223372036854775808"));
  EXPECT_TRUE(is_refused<std::uint64_t>("-1"));
  EXPECT_TRUE(is_refused<std::int32_t>("2147483648"));
}

TEST(JsonInteger, NothingButAnIntegerIsOne) {
  for (const char* text : {"1e300", "1.5", "1.0", "true", "null", "\"1\"", "[1]", "{}"}) {
    EXPECT_TRUE(is_refused<std::int64_t>(text)) << text;
  }
  EXPECT_THROW(integer_at(json::parse("{}"), "step"), json::exception);
}

}  // namespace
}  // namespace satrap
