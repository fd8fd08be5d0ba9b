#include "src/data/passes/date_part.h"

#include <chrono>
#include <cmath>

#include "satrap/core/error.h"

namespace satrap::data {

std::uint64_t id_of_part(DatePart part, const TimeZone& zone, double ms) {
  using namespace std::chrono;
  const auto time = static_cast<std::int64_t>(std::floor(ms / 1000.0));
  const sys_seconds local(seconds(time + zone.offset_at(time)));
  const sys_days day = floor<days>(local);
  switch (part) {
    case DatePart::kHour:
      return static_cast<std::uint64_t>(floor<hours>(local - day).count());
    case DatePart::kWeekday:
      return weekday(day).iso_encoding() - 1;
    case DatePart::kMonthDay:
      return static_cast<unsigned>(year_month_day(day).day());
    case DatePart::kNone:
      break;
  }
  SATRAP_CHECK(false, "a feature without a part of a time");
}

double age_of(double time, double since, AgeUnit unit) {
  constexpr double kSecond = 1000.0;
  constexpr double kMs[] = {kSecond, 60 * kSecond, 3600 * kSecond, 86'400 * kSecond};
  return (time - since) / kMs[static_cast<std::size_t>(unit)];
}

}  // namespace satrap::data
