#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace satrap::data {

/// The rule of a time zone for the years behind its last known transition, as POSIX writes it:
/// "CET-1CEST,M3.5.0,M10.5.0/3".
struct ZoneRule {
  /// A day of the year, and the seconds of the clock behind its beginning.
  struct Change {
    enum class Kind : std::uint8_t { kWeekday, kDayWithoutLeapDay, kDay };
    Kind kind = Kind::kDay;
    std::int64_t month = 0, week = 0;  // of kWeekday; week 5: the last one
    std::int64_t day = 0;              // of the week from Sunday, 0; or of the year
    std::int64_t time = 7200;

    /// Seconds since 1970 on a clock of the zone.
    std::int64_t in_year(int year) const;
  };

  std::int64_t offset = 0;  // seconds ahead of UTC
  bool has_summer = false;
  std::int64_t summer_offset = 0;
  Change to_summer, from_summer;

  /// nullopt: it is no rule.
  static std::optional<ZoneRule> parse(std::string_view text);
};

}  // namespace satrap::data
