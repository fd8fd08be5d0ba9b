#include "src/data/rows/field_parse.h"

#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include "satrap/core/hash.h"

namespace satrap::data {
namespace {

TEST(FieldParse, Hex8TakesEitherCase) {
  std::uint64_t value = 0;
  EXPECT_TRUE(hex8_of("05db9164", value));
  EXPECT_EQ(value, 0x05DB9164U);
  EXPECT_TRUE(hex8_of("FFFFffff", value));
  EXPECT_EQ(value, 0xFFFFFFFFU);
  EXPECT_TRUE(hex8_of("00000000", value));
  EXPECT_EQ(value, 0U);
}

TEST(FieldParse, Hex8RefusesEveryOtherByteAnywhere) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto c = static_cast<char>(byte);
    const bool is_hex = std::string("0123456789abcdefABCDEF").find(c) != std::string::npos;
    for (std::size_t at = 0; at < 8; ++at) {
      std::string text = "12345678";
      text[at] = c;
      std::uint64_t value = 0;
      EXPECT_EQ(hex8_of(text.data(), value), is_hex) << byte << " at " << at;
    }
  }
}

TEST(FieldParse, Hex8AgreesWithPrintf) {
  const RandomStream random{1};
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const auto expected = static_cast<std::uint32_t>(random.bits(i));
    char text[16];
    std::snprintf(text, sizeof(text), i % 2 == 0 ? "%08x" : "%08X", expected);
    std::uint64_t value = 0;
    ASSERT_TRUE(hex8_of(text, value));
    ASSERT_EQ(value, expected);
  }
}

TEST(FieldParse, HexIsOneToSixteenDigits) {
  std::uint64_t value = 0;
  EXPECT_TRUE(hex_of("f", value));
  EXPECT_EQ(value, 15U);
  EXPECT_TRUE(hex_of("0xFfffffffffffffff", value));
  EXPECT_EQ(value, UINT64_MAX);
  for (const char* text : {"", "0x", "g", "12 ", "10000000000000000", "-1"}) {
    EXPECT_FALSE(hex_of(text, value)) << text;
  }
}

TEST(FieldParse, AnIntHasSixtyFourBits) {
  std::uint64_t value = 0;
  EXPECT_TRUE(int_of("18446744073709551615", value));
  EXPECT_EQ(value, UINT64_MAX);
  EXPECT_TRUE(int_of("-1", value));
  EXPECT_EQ(value, UINT64_MAX);
  EXPECT_TRUE(int_of("007", value));
  EXPECT_EQ(value, 7U);
  for (const char* text :
       {"", "-", "+1", "1.0", "1 ", " 1", "18446744073709551616", "-9223372036854775809"}) {
    EXPECT_FALSE(int_of(text, value)) << text;
  }
}

TEST(FieldParse, ANumberIsFinite) {
  double value = 0;
  const auto is = [&](const char* text) { return number_of(text, value); };
  EXPECT_EQ(is("-1.5e3"), NumberIs::kThere);
  EXPECT_EQ(value, -1500.0);
  EXPECT_EQ(is("+.25"), NumberIs::kThere);
  EXPECT_EQ(value, 0.25);
  EXPECT_EQ(is("1e-300"), NumberIs::kThere);
  EXPECT_EQ(value, 1e-300);
  for (const char* text : {"", "nan", "inf", "-inf", "1,5", "1.5x", "--1", "+-1", "."}) {
    EXPECT_EQ(is(text), NumberIs::kNone) << text;
  }
}

TEST(FieldParse, WhatIsTooSmallIsZeroAndWhatIsTooLargeIsSaid) {
  double value = 1;
  for (const char* text : {"1e-400", "-1e-400", "0.0e-999999", "1e-99999"}) {
    EXPECT_EQ(number_of(text, value), NumberIs::kThere) << text;
    EXPECT_EQ(value, 0.0) << text;
  }
  EXPECT_EQ(number_of("4.9e-324", value), NumberIs::kThere);
  EXPECT_GT(value, 0.0);
  EXPECT_EQ(number_of("3.4028235e38", value), NumberIs::kThere);
  for (const char* text : {"3.4028236e38", "1e39", "-1e39", "1e400", "-1e400"}) {
    EXPECT_EQ(number_of(text, value), NumberIs::kTooLarge) << text;
  }
}

TEST(FieldParse, FindsTheFirstDelimiterOrLineEnd) {
  const std::string text = "abc\tdefghijklmnop\nq\n" + std::string(16, '\0');
  EXPECT_EQ(find_field_end(text.data(), '\t') - text.data(), 3);
  EXPECT_EQ(find_field_end(text.data() + 3, '\t') - text.data(), 3);
  EXPECT_EQ(find_field_end(text.data() + 4, '\t') - text.data(), 17);
  EXPECT_EQ(find_field_end(text.data() + 18, '\t') - text.data(), 19);
}

}  // namespace
}  // namespace satrap::data
