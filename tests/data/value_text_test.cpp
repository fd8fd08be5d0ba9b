#include "src/data/columnar/value_text.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace satrap::data {
namespace {

using ValueKind = ParquetFile::Kind;

std::string integer_text(std::int64_t value, ValueKind kind) {
  ParquetValues values;
  values.integers = {value};
  NumberText buffer;
  return std::string(text_of(values, kind, 0, buffer));
}

TEST(ValueText, Numbers) {
  ParquetValues values;
  values.floats = {0.1F};
  values.doubles = {-2.5e10};
  NumberText buffer;
  EXPECT_EQ(text_of(values, ValueKind::kFloat, 0, buffer), "0.1");
  EXPECT_EQ(text_of(values, ValueKind::kDouble, 0, buffer), "-25000000000");
  EXPECT_EQ(text_of(values, ValueKind::kDouble, 0, buffer, /*value_rule=*/1), "-2.5e+10");
  EXPECT_EQ(integer_text(1, ValueKind::kTruth), "true");
  EXPECT_EQ(integer_text(0, ValueKind::kTruth), "false");
  EXPECT_EQ(integer_text(-5, ValueKind::kInteger), "-5");
  EXPECT_EQ(integer_text(-1, ValueKind::kUnsigned), "18446744073709551615");
}

TEST(ValueText, Dates) {
  EXPECT_EQ(integer_text(0, ValueKind::kDays), "1970-01-01");
  EXPECT_EQ(integer_text(-1, ValueKind::kDays), "1969-12-31");
  EXPECT_EQ(integer_text(20'784, ValueKind::kDays), "2026-11-27");
  EXPECT_EQ(integer_text(-719'528, ValueKind::kDays), "0000-01-01");
  EXPECT_EQ(integer_text(2'932'896, ValueKind::kDays), "9999-12-31");
  EXPECT_EQ(integer_text(2'932'897, ValueKind::kDays), "2932897") << "years of five digits";
  EXPECT_EQ(integer_text(-719'529, ValueKind::kDays), "-719529");
}

TEST(ValueText, Times) {
  constexpr std::int64_t kSecond = 1'795'813'509;  // of date -u
  EXPECT_EQ(integer_text(kSecond, ValueKind::kSeconds), "2026-11-27T21:05:09");
  EXPECT_EQ(integer_text(kSecond * 1'000, ValueKind::kMilliseconds), "2026-11-27T21:05:09");
  EXPECT_EQ(integer_text(kSecond * 1'000 + 5, ValueKind::kMilliseconds), "2026-11-27T21:05:09.005");
  EXPECT_EQ(integer_text(kSecond * 1'000'000 + 250'000, ValueKind::kMicroseconds),
            "2026-11-27T21:05:09.250");
  EXPECT_EQ(integer_text(kSecond * 1'000'000 + 1, ValueKind::kMicroseconds),
            "2026-11-27T21:05:09.000001");
  EXPECT_EQ(integer_text(kSecond * 1'000'000'000 + 123'456'789, ValueKind::kNanoseconds),
            "2026-11-27T21:05:09.123456789");
  EXPECT_EQ(integer_text(-1, ValueKind::kMicroseconds), "1969-12-31T23:59:59.999999");
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(integer_text(kLeast, ValueKind::kNanoseconds), "1677-09-21T00:12:43.145224192");
  EXPECT_EQ(integer_text(kLeast, ValueKind::kSeconds), std::to_string(kLeast));
}

}  // namespace
}  // namespace satrap::data
