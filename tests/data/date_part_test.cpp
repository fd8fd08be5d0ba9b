#include "src/data/passes/date_part.h"

#include <cmath>

#include <gtest/gtest.h>

namespace satrap::data {
namespace {

constexpr double kHourMs = 3'600'000.0;

TEST(DatePartTest, TheFirstSecondOf1970IsMidnightOfAThursday) {
  EXPECT_EQ(id_of_part(DatePart::kHour, TimeZone(), 0), 0U);
  EXPECT_EQ(id_of_part(DatePart::kWeekday, TimeZone(), 0), 3U);
  EXPECT_EQ(id_of_part(DatePart::kMonthDay, TimeZone(), 0), 1U);
}

TEST(DatePartTest, AMillisecondBeforeItWasWednesdayTheThirtyFirst) {
  EXPECT_EQ(id_of_part(DatePart::kHour, TimeZone(), -1), 23U);
  EXPECT_EQ(id_of_part(DatePart::kWeekday, TimeZone(), -1), 2U);
  EXPECT_EQ(id_of_part(DatePart::kMonthDay, TimeZone(), -1), 31U);
}

TEST(DatePartTest, TheWeekBeginsWithMonday) {
  for (std::uint64_t day = 0; day < 7; ++day) {  // 1970-01-05 was a Monday
    EXPECT_EQ(
        id_of_part(DatePart::kWeekday, TimeZone(), static_cast<double>(4 + day) * 24 * kHourMs),
        day);
  }
}

TEST(DatePartTest, AnAgeIsCountedInItsUnit) {
  EXPECT_EQ(age_of(5000, 2000, AgeUnit::kSecond), 3.0);
  EXPECT_EQ(age_of(90'000, 0, AgeUnit::kMinute), 1.5);
  EXPECT_EQ(age_of(0, kHourMs, AgeUnit::kHour), -1.0);
  EXPECT_EQ(age_of(36 * kHourMs, 0, AgeUnit::kDay), 1.5);
  EXPECT_TRUE(std::isnan(age_of(std::nan(""), 0, AgeUnit::kDay)));
  EXPECT_TRUE(std::isnan(age_of(0, std::nan(""), AgeUnit::kDay)));
}

}  // namespace
}  // namespace satrap::data
