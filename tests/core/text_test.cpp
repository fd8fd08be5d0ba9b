#include "satrap/core/text.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap {
namespace {

TEST(ParseNumber, TakesWholeNumbersOfTheTypeOnly) {
  EXPECT_EQ(parse_number<std::int64_t>("-12"), -12);
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615"), ~0ULL);
  EXPECT_EQ(parse_number<double>("1e-3"), 0.001);
  EXPECT_EQ(parse_number<float>(".5"), 0.5F);
  EXPECT_EQ(parse_hex<std::uint64_t>("68fd1E64"), 0x68FD1E64u);
  for (const char* text : {"", " 1", "1 ", "1x", "0x1", "+1", "1.0", "9223372036854775808"}) {
    EXPECT_EQ(parse_number<std::int64_t>(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_number<std::uint64_t>("-1"), std::nullopt);
  EXPECT_EQ(parse_number<double>("1,5"), std::nullopt);
  EXPECT_EQ(parse_number<double>("1e999"), std::nullopt);
  EXPECT_EQ(parse_hex<std::uint32_t>("123456789"), std::nullopt);
  EXPECT_EQ(parse_hex<std::uint32_t>("g"), std::nullopt);
}

TEST(ParseBytes, KnowsDecimalAndBinaryUnits) {
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("100"), 100);
  EXPECT_EQ(parse_bytes("100B"), 100);
  EXPECT_EQ(parse_bytes("2kB"), 2000);
  EXPECT_EQ(parse_bytes("512MiB"), 512LL << 20);
  EXPECT_EQ(parse_bytes("1.5 GiB"), 3LL << 29);
  EXPECT_EQ(parse_bytes("8gib"), 8LL << 30);
  EXPECT_EQ(parse_bytes("9223372036854775807"), INT64_MAX);
}

TEST(ParseBytes, RefusesTheRest) {
  for (const char* text : {"", "GiB", "-1", "-1GiB", "1 2GiB", "8G", "8GiB/s", "1e3MB", "9e99",
                           "8388608TiB", "inf", "1.2.3GiB"}) {
    EXPECT_THROW(parse_bytes(text), Error) << text;
  }
}

TEST(ParseBytesOrShare, TakesEither) {
  EXPECT_EQ(parse_bytes_or_share("1GiB", 100), 1LL << 30);
  EXPECT_EQ(parse_bytes_or_share("0%", 1LL << 40), 0);
  EXPECT_EQ(parse_bytes_or_share("12.5%", 1LL << 40), 1LL << 37);
  EXPECT_EQ(parse_bytes_or_share("100%", 1000), 1000);
  for (const char* text : {"", "%", "-1%", "101%", "1 %", "1%%", "10%B", "ten%", "nan%"}) {
    EXPECT_THROW(parse_bytes_or_share(text, 1000), Error) << text;
  }
}

TEST(ParseDuration, AddsUpItsParts) {
  EXPECT_EQ(parse_duration("0"), 0);
  EXPECT_EQ(parse_duration("30s"), 30);
  EXPECT_EQ(parse_duration("10min"), 600);
  EXPECT_EQ(parse_duration("10 m"), 600);
  EXPECT_EQ(parse_duration("500ms"), 0.5);
  EXPECT_EQ(parse_duration("1.5h"), 5400);
  EXPECT_EQ(parse_duration("1h30min"), 5400);
  EXPECT_EQ(parse_duration("1d 1h 1min 1s"), 86400 + 3600 + 60 + 1);
}

TEST(ParseDuration, RefusesTheRest) {
  for (const char* text : {"", "10", "min", "-1s", "10 steps", "1h30", "1e3s", "nan s", "s10"}) {
    EXPECT_THROW(parse_duration(text), Error) << text;
  }
}

TEST(FormatBytes, HasThreeDigitsAndABinaryUnit) {
  EXPECT_EQ(format_bytes(0), "0B");
  EXPECT_EQ(format_bytes(1023), "1023B");
  EXPECT_EQ(format_bytes(1536), "1.50KiB");
  EXPECT_EQ(format_bytes(8LL << 30), "8.00GiB");
  EXPECT_EQ(format_bytes(INT64_MAX), "8.00EiB");
  EXPECT_EQ(format_bytes((1LL << 20) - 1), "1.00MiB");
}

TEST(Printable, LeavesTextAsItIs) {
  for (const char* text :
       {"", "day_3.tsv:5: I3 \"x?y\" \\", "größer ≥ 2 \xF0\x9F\x99\x82",
        "\xC2\xA0\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEF\xBF\xBF\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, ShowsControlCharacters) {
  EXPECT_EQ(printable("\x1B[31mRED\a\r\n\tend"),
            "\\x1b[31mRED\\x07\\x0d\\x0a\\x09"
            "end");
  EXPECT_EQ(printable(std::string_view("\0\x1F \x7F", 4)), "\\x00\\x1f \\x7f");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\xc2\\x9b31m")
      << "CSI in one character";
}

TEST(Printable, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("a\x9B"
                      "1m"),
            "a\\x9b1m")
      << "CSI in one byte";
  EXPECT_EQ(printable("\xC3"), "\\xc3") << "cut off";
  EXPECT_EQ(printable("\xE2\x82z"), "\\xe2\\x82z");
  EXPECT_EQ(printable("\xC0\x9B"), "\\xc0\\x9b") << "longer than needed";
  EXPECT_EQ(printable("\xE0\x82\x9B"), "\\xe0\\x82\\x9b");
  EXPECT_EQ(printable("\xF0\x80\x82\x9B"), "\\xf0\\x80\\x82\\x9b");
  EXPECT_EQ(printable("\xED\xA0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(printable("\xF4\x90\x80\x80\xFF"), "\\xf4\\x90\\x80\\x80\\xff") << "beyond U+10FFFF";
}

TEST(FormatCount, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1.00k");
  EXPECT_EQ(format_count(45'678), "45.7k");
  EXPECT_EQ(format_count(999'600), "1.00M");
  EXPECT_EQ(format_count(1'234'567), "1.23M");
  EXPECT_EQ(format_count(1e13), "10.0T");
  EXPECT_EQ(format_count(-1500), "-1.50k");
}

TEST(FormatDuration, UsesTheTwoLargestUnits) {
  EXPECT_EQ(format_duration(0), "0ms");
  EXPECT_EQ(format_duration(0.85), "850ms");
  EXPECT_EQ(format_duration(12.34), "12.3s");
  EXPECT_EQ(format_duration(59.96), "1min00s");
  EXPECT_EQ(format_duration(200), "3min20s");
  EXPECT_EQ(format_duration(7500), "2h05min");
  EXPECT_EQ(format_duration(3 * 86400 + 4 * 3600), "3d04h");
  EXPECT_EQ(format_duration(INFINITY), "?");
}

TEST(FormatDuration, IsReadBackByParseDuration) {
  for (const double seconds : {0.25, 12.5, 200.0, 7500.0, 86400.0 * 3 + 7200}) {
    EXPECT_DOUBLE_EQ(parse_duration(format_duration(seconds)), seconds);
  }
}

TEST(Text, WithCommasGroupsDigitsByThree) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1'000), "1,000");
  EXPECT_EQ(with_commas(1'234'567), "1,234,567");
  EXPECT_EQ(with_commas(-100), "-100");
  EXPECT_EQ(with_commas(-100'000), "-100,000");
}

TEST(IsUtf8, TakesEveryCharacterAndNothingElse) {
  for (const char* text :
       {"", "plain\t\n", "Z\xC3\xBCrich", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xC2\x85 of C1"}) {
    EXPECT_TRUE(is_utf8(text)) << text;
  }
  for (const char* text :
       {"Z\xFCrich", "\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF5\x80\x80\x80", "a\x80"}) {
    EXPECT_FALSE(is_utf8(text)) << printable(text);
  }
}

}  // namespace
}  // namespace satrap
