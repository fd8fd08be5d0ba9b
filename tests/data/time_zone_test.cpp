#include "satrap/data/time_zone.h"

#include <chrono>
#include <filesystem>
#include <string>

#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kHour = 3600;

std::string bytes_of(std::int64_t value, int size) {
  std::string bytes;
  for (int i = size - 1; i >= 0; --i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

std::string header(std::int64_t transitions, std::int64_t types, char version = '2') {
  std::string bytes = std::string("TZif") + version + std::string(15, '\0');
  for (const std::int64_t count :
       {std::int64_t{0}, std::int64_t{0}, std::int64_t{0}, transitions, types, std::int64_t{4}}) {
    bytes += bytes_of(count, 4);
  }
  return bytes;
}

std::string type(std::int64_t offset) { return bytes_of(offset, 4) + std::string(2, '\0'); }

/// One hour ahead of UTC until 1000, two until 2000, and then by the rule.
std::string zone_file(const std::string& rule) {
  return header(0, 1) + type(0) + "ABC" + '\0' +  // for old readers
         header(2, 2) + bytes_of(1000, 8) + bytes_of(2000, 8) + std::string("\1\0", 2) +
         type(kHour) + type(2 * kHour) + "ABC" + '\0' + '\n' + rule + '\n';
}

std::int64_t seconds_of(int year, unsigned month, unsigned day, int hour) {
  using namespace std::chrono;
  const sys_days date(std::chrono::year(year) / std::chrono::month(month) / std::chrono::day(day));
  return date.time_since_epoch().count() * 24 * kHour + hour * kHour;
}

TEST(TimeZoneTest, TransitionsAreInForceFromTheirTimeOn) {
  const TimeZone zone = TimeZone::parse(zone_file(""), "test");
  EXPECT_EQ(zone.offset_at(-1'000'000'000'000), kHour);
  EXPECT_EQ(zone.offset_at(999), kHour);
  EXPECT_EQ(zone.offset_at(1000), 2 * kHour);
  EXPECT_EQ(zone.offset_at(1999), 2 * kHour);
  EXPECT_EQ(zone.offset_at(2000), kHour);
  EXPECT_EQ(zone.offset_at(1'000'000'000'000), kHour);
}

TEST(TimeZoneTest, TheRuleHoldsForEveryLaterYear) {
  const TimeZone zone = TimeZone::parse(zone_file("CET-1CEST,M3.5.0,M10.5.0/3"), "test");
  for (const int year : {1970, 1999, 2026, 2370, 2371, 2400, 2800, 9998}) {
    EXPECT_EQ(zone.offset_at(seconds_of(year, 7, 1, 0)), 2 * kHour) << year;
    EXPECT_EQ(zone.offset_at(seconds_of(year, 12, 1, 0)), kHour) << year;
  }
  // 2026-03-29 and 2026-10-25, 400 and 4000 years later the same
  for (const int year : {2026, 2426, 6026}) {
    EXPECT_EQ(zone.offset_at(seconds_of(year, 3, 29, 1) - 1), kHour);
    EXPECT_EQ(zone.offset_at(seconds_of(year, 3, 29, 1)), 2 * kHour);
    EXPECT_EQ(zone.offset_at(seconds_of(year, 10, 25, 1) - 1), 2 * kHour);
    EXPECT_EQ(zone.offset_at(seconds_of(year, 10, 25, 1)), kHour);
  }
}

TEST(TimeZoneTest, RulesMayCountDaysAndNameZonesInBrackets) {
  const TimeZone days = TimeZone::parse(zone_file("<-03>3<-02>,J60/0,300/-1:30"), "test");
  EXPECT_EQ(days.offset_at(seconds_of(2024, 3, 1, 3) - 1), -3 * kHour);  // J60 is always March 1
  EXPECT_EQ(days.offset_at(seconds_of(2024, 3, 1, 3)), -2 * kHour);
  EXPECT_EQ(days.offset_at(seconds_of(2023, 3, 1, 3)), -2 * kHour);
  // Day 300 from 0 is October 27 of a leap year; -1:30 there is 22:30 the day before.
  EXPECT_EQ(days.offset_at(seconds_of(2024, 10, 27, 0) + kHour / 2 - 1), -2 * kHour);
  EXPECT_EQ(days.offset_at(seconds_of(2024, 10, 27, 0) + kHour / 2), -3 * kHour);
  const TimeZone fixed = TimeZone::parse(zone_file("<+01>-1"), "test");
  EXPECT_EQ(fixed.offset_at(seconds_of(3000, 7, 1, 0)), kHour);
}

TEST(TimeZoneTest, UtcNeedsNoFile) {
  EXPECT_EQ(TimeZone().offset_at(1'800'000'000), 0);
  EXPECT_EQ(TimeZone("UTC", "/nowhere").offset_at(-5), 0);
}

std::string refused_zone(const std::string& content) {
  return error_of([&] { TimeZone::parse(content, "test"); }, ErrorCode::kInvalidConfig);
}

TEST(TimeZoneTest, DamagedFilesAreRefused) {
  const std::string whole = zone_file("CET-1CEST,M3.5.0,M10.5.0/3");
  for (std::size_t size = 0; size + 1 < whole.size(); ++size) refused_zone(whole.substr(0, size));
  EXPECT_TRUE(contains(refused_zone("hello, this is a text"), "is none of a time zone"));
  EXPECT_TRUE(contains(refused_zone(header(0, 1, '\0')), "of version 1"));
  std::string wrong_type = whole;
  wrong_type[wrong_type.find('\1', 100)] = 7;
  EXPECT_TRUE(contains(refused_zone(wrong_type), "a transition to nothing"));
  for (const char* rule : {"CET", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0",
                           "CET-1CEST,M3.5.0,M10.5.0/3 ", "CET-1CEST,M0.5.0,M1.1.0", "<CET-1",
                           "CET-168", "CET-1CEST,J0,J9", "CET-1CEST,M3.6.0,M10.5.0"}) {
    EXPECT_TRUE(contains(refused_zone(zone_file(rule)), "is no rule")) << rule;
  }
}

class TimeZoneFiles : public FilesTest {
 protected:
  TimeZoneFiles() {
    std::filesystem::create_directory(path_of("Asia"));
    write("Asia/Shanghai", zone_file("CST-8"));
    folder_ = path_of("Asia").substr(0, path_of("Asia").size() - 5);
  }
  std::string unknown(const std::string& name) const {
    return error_of([&] { TimeZone(name, folder_); }, ErrorCode::kInvalidConfig);
  }
  std::string folder_;
};

TEST_F(TimeZoneFiles, AreFoundByName) {
  EXPECT_EQ(TimeZone("Asia/Shanghai", folder_).offset_at(1500), 2 * kHour);
}

TEST_F(TimeZoneFiles, AnUnknownNameIsToldWithTheNearest) {
  EXPECT_EQ(unknown("Asia/Shangai"),
            "time zone 'Asia/Shangai' is unknown; did you mean 'Asia/Shanghai'?");
  EXPECT_TRUE(contains(unknown("CEST"), "time zone 'CEST' is none of those in "));
  for (const char* name : {"", "Asia", "/etc/passwd", "../Asia/Shanghai", "Asia/Shanghai\n"}) {
    EXPECT_TRUE(contains(unknown(name), "time zone '")) << name;
  }
  EXPECT_TRUE(contains(
      error_of([&] { TimeZone("Asia/Shanghai", folder_ + "/none"); }, ErrorCode::kInvalidConfig),
      "install the package tzdata"));
}

}  // namespace
}  // namespace satrap::data
