#include "src/data/look/date_text.h"

#include <gtest/gtest.h>

namespace satrap::data {
namespace {

TEST(DateText, NotationsOfADayAreTheSame) {
  const auto day = date_of("2026-03-21", false);
  ASSERT_TRUE(day.has_value());
  for (const char* text : {"2026/3/21", "2026.03.21", "03/21/2026", "3/21/26", "03-21-2026",
                           "20260321", "21-Mar-2026", "21 March 2026", "Mar 21, 2026",
                           "Sat, 21 Mar 2026", "Saturday, March 21, 2026", "21-Mar-26"}) {
    EXPECT_EQ(date_of(text, false), day) << text;
  }
  for (const char* text : {"21.03.2026", "21/3/2026", "21-03-2026", "21/3/26", "20260321"}) {
    EXPECT_EQ(date_of(text, true), day) << text;
  }
}

TEST(DateText, NotationsOfATimeOfDayAreTheSame) {
  const auto time = date_of("2026-03-21 14:05:00", false);
  ASSERT_TRUE(time.has_value());
  for (const char* text :
       {"2026-03-21T14:05:00Z", "2026-03-21 14:05", "2026-03-21 14:05:00.000",
        "2026-03-21T14:05:00+01:00", "2026-03-21 14:05:00 UTC", "3/21/2026 2:05 PM",
        "3/21/2026, 2:05:00 pm", "20260321140500", "Sat, 21 Mar 2026 14:05:00 +0100"}) {
    EXPECT_EQ(date_of(text, false), time) << text;
  }
  EXPECT_EQ(date_of("2026-03-21 14", false), date_of("2026032114", false));
  EXPECT_EQ(date_of("3/21/2026 12:00 AM", false), date_of("3/21/2026", false));
}

TEST(DateText, LaterIsLarger) {
  const char* last = "1999-12-31 23:59:59.998";
  for (const char* text : {"1999-12-31 23:59:59.999", "2000-01-01", "2000-01-01 00:00:01",
                           "2000-01-31 23:59:59", "2000-02-01", "2026-12-31"}) {
    EXPECT_LT(date_of(last, false), date_of(text, false)) << text;
    last = text;
  }
}

TEST(DateText, TheDayHasItsPlace) {
  EXPECT_FALSE(date_of("21/03/2026", false));
  EXPECT_FALSE(date_of("03/21/2026", true));
  EXPECT_LT(date_of("02/03/2026", false), date_of("02/03/2026", true));
}

TEST(DateText, WhatIsNoDate) {
  for (const char* text : {"",
                           "2026",
                           "2026-03",
                           "12/2026",
                           "1.2",
                           "1.2.3",
                           "21.03.26",
                           "192.168.0.1",
                           "14:05",
                           "20261321",
                           "20260332",
                           "18000101",
                           "1234567890",
                           "123456789012345",
                           "red",
                           "March",
                           "may 5",
                           "5-abc-2026",
                           "2026-03-21 noon",
                           "2026-03-21 25:00",
                           "2026-03-21 1:5",
                           "3/21/2026x",
                           "1-2/2026",
                           "Mar 2026",
                           "0/1/2026",
                           "1/32/2026",
                           "99999999999-1-1"}) {
    EXPECT_FALSE(date_of(text, false)) << text;
  }
}

}  // namespace
}  // namespace satrap::data
