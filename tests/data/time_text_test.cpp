#include "src/data/rows/time_text.h"

#include <string>

#include <gtest/gtest.h>

namespace satrap::data {
namespace {

constexpr double kDay = 86'400'000.0;
constexpr double kNight = 20'777 * kDay + 75'909'000.0;  // 2026-11-20T21:05:09Z

double ms_of_text(const std::string& text) {
  double ms = -1.5;
  return time_of_text(text, ms) == TimeIs::kThere ? ms : -1.5;
}

double ms_of_number(double number) {
  double ms = -1.5;
  return time_of_number(number, ms) == TimeIs::kThere ? ms : -1.5;
}

TEST(TimeText, ADateIsItsBeginningInUtc) {
  for (const char* text : {"2026-11-20", "2026/11/20", "20.11.2026"}) {
    EXPECT_EQ(ms_of_text(text), 20'777 * kDay) << text;
  }
  EXPECT_EQ(ms_of_text("1970-1-1"), 0.0);
  EXPECT_EQ(ms_of_text("1969-12-31"), -kDay);
  EXPECT_EQ(ms_of_text("2024-02-29"), 19'782 * kDay);
}

TEST(TimeText, ATimeOfDayIsBehindATOrSpaces) {
  for (const char* text : {"2026-11-20T21:05:09", "2026-11-20 21:05:09", "2026-11-20  21:05:09",
                           "20.11.2026 21:05:09", "2026/11/20t21:05:09.000"}) {
    EXPECT_EQ(ms_of_text(text), kNight) << text;
  }
  EXPECT_EQ(ms_of_text("2026-11-20 21:05"), kNight - 9000);
  EXPECT_EQ(ms_of_text("2026-11-20 7:05"), 20'777 * kDay + 25'500'000);
  EXPECT_EQ(ms_of_text("2016-12-31T23:59:60Z"), ms_of_text("2017-01-01"));  // a leap second
}

TEST(TimeText, WhatIsBelowAMillisecondIsDropped) {
  EXPECT_EQ(ms_of_text("2026-11-20T21:05:09.125"), kNight + 125);
  EXPECT_EQ(ms_of_text("2026-11-20T21:05:09,5"), kNight + 500);
  EXPECT_EQ(ms_of_text("2026-11-20T21:05:09.125999999"), kNight + 125);
}

TEST(TimeText, AZoneOfTheTextCounts) {
  for (const char* zone : {"Z", "z", "UTC", " UTC", " GMT", "+00:00", "-0000", "+00"}) {
    EXPECT_EQ(ms_of_text(std::string("2026-11-20T21:05:09") + zone), kNight) << zone;
  }
  EXPECT_EQ(ms_of_text("2026-11-21T05:05:09+08:00"), kNight);
  EXPECT_EQ(ms_of_text("2026-11-21 05:05:09.000 +0800"), kNight);
  EXPECT_EQ(ms_of_text("2026-11-20T13:35:09-0730"), kNight);
}

TEST(TimeText, OtherTextsAreNone) {
  for (const char* text : {"",
                           "x",
                           "2026",
                           "2026-11",
                           "2026-13-01",
                           "2026-02-30",
                           "2026-11/20",
                           "26-11-20",
                           "11/20/2026",
                           "20.11.26",
                           "2026-11-20T",
                           "2026-11-20x",
                           "2026-11-20 ",
                           "2026-011-20",
                           "0000-01-01",
                           "10000-01-01",
                           "+2026-11-20",
                           "-001-01-01",
                           "2026-00-00",
                           "2026-11-20T24:00",
                           "2026-11-20T21:60",
                           "2026-11-20T21:05:61",
                           "2026-11-20T21:5",
                           "2026-11-20T21:05:09.",
                           "2026-11-20T21:05 PM",
                           "2026-11-20T21:05+8",
                           "2026-11-20T21:05+08:0",
                           "2026-11-20T21:05+24:00",
                           "2026-11-20T21:05Z ",
                           "0001-01-01T00:00+01:00",
                           "9999-12-31T23:59:59-00:01"}) {
    double ms = 0;
    EXPECT_EQ(time_of_text(text, ms), TimeIs::kNone) << text;
  }
}

TEST(TimeText, TheZeroDateOfMySqlIsMissing) {
  double ms = 0;
  EXPECT_EQ(time_of_text("0000-00-00", ms), TimeIs::kMissing);
  EXPECT_EQ(time_of_text("0000-00-00 00:00:00", ms), TimeIs::kMissing);
}

TEST(TimeText, ANumberSaysByItsSizeWhatItCounts) {
  EXPECT_EQ(ms_of_number(0), 0.0);
  EXPECT_EQ(ms_of_number(kNight / 1000), kNight);
  EXPECT_EQ(ms_of_number(kNight), kNight);
  EXPECT_EQ(ms_of_number(kNight * 1e3), kNight);
  EXPECT_EQ(ms_of_number(kNight * 1e6), kNight);
  EXPECT_EQ(ms_of_number(kNight / 1000 + 0.125), kNight + 125);
  EXPECT_EQ(ms_of_number(kNight + 0.9), kNight);
  EXPECT_EQ(ms_of_number(99'999'999'999.0), 99'999'999'999'000.0);
  EXPECT_EQ(ms_of_number(100'000'000'000.0), 100'000'000'000.0);
}

TEST(TimeText, ThousandthsOfASecondArriveWhole) {
  for (int ms = 0; ms < 1000; ++ms) {
    const double seconds = std::stod("1763673909." + std::to_string(1000 + ms).substr(1));
    EXPECT_EQ(ms_of_number(seconds), 1'763'673'909'000.0 + ms);
  }
}

TEST(TimeText, NumbersBefore1970AreRoundedDown) {
  EXPECT_EQ(ms_of_number(-0.0), 0.0);
  EXPECT_EQ(ms_of_number(-1), -1000.0);
  EXPECT_EQ(ms_of_number(-0.5), -500.0);
  EXPECT_EQ(ms_of_number(-0.0001), -1.0);
  EXPECT_EQ(ms_of_number(-100'000'000'000.5), -100'000'000'001.0);
}

TEST(TimeText, DatesWithoutSeparatorsAreDates) {
  EXPECT_EQ(ms_of_number(20261120), 20'777 * kDay);
  EXPECT_EQ(ms_of_number(20261120210509), kNight);
  EXPECT_EQ(ms_of_number(20261320), 20'261'320'000.0);  // no date: seconds
  EXPECT_EQ(ms_of_number(20261120.5), 20'261'120'500.0);
  EXPECT_EQ(ms_of_number(18991231), 18'991'231'000.0);
  EXPECT_EQ(ms_of_number(20261120250509), 20'261'120'250'509.0);
}

TEST(TimeText, TimesAreOfTheYears1To9999) {
  EXPECT_EQ(ms_of_text("0001-01-01"), -62'135'596'800'000.0);
  EXPECT_EQ(ms_of_text("9999-12-31T23:59:59.999"), 253'402'300'799'999.0);
  EXPECT_EQ(ms_of_number(-62'135'596'800.0), -62'135'596'800'000.0);
  for (const double number : {-62'135'596'801.0, 3e20, -3e20, 1e30, 3e38}) {
    EXPECT_EQ(ms_of_number(number), -1.5) << number;
  }
}

}  // namespace
}  // namespace satrap::data
