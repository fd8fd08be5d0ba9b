#include "src/data/columnar/value_text.h"

#include <charconv>
#include <chrono>
#include <cstdint>

#include <fmt/format.h>

namespace satrap::data {
namespace {

/// `ticks` of a clock that has so many per day, since 1970-01-01.
std::string_view text_of_time(std::int64_t ticks, std::int64_t ticks_per_day, NumberText& buffer) {
  constexpr std::int64_t kYear0 = -719'528, kYear10000 = 2'932'897;  // in days
  constexpr std::int64_t kSecondsPerDay = 86'400;
  const std::int64_t of_day = (ticks % ticks_per_day + ticks_per_day) % ticks_per_day;
  const std::int64_t days = ticks / ticks_per_day - (ticks % ticks_per_day < 0 ? 1 : 0);
  if (days < kYear0 || days >= kYear10000) return text_of_integer(ticks, buffer);
  const std::chrono::year_month_day date(
      std::chrono::sys_days(std::chrono::days(static_cast<int>(days))));
  char* end =
      fmt::format_to(buffer.data(), "{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  if (ticks_per_day > 1) {
    const std::int64_t per_second = ticks_per_day / kSecondsPerDay;
    const std::int64_t second = of_day / per_second;
    end = fmt::format_to(end, "T{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
    std::int64_t fraction = of_day % per_second, unit = per_second;
    if (fraction > 0) *end++ = '.';
    for (; fraction > 0; fraction %= unit) {
      unit /= 1000;
      end = fmt::format_to(end, "{:03}", fraction / unit);
    }
  }
  return {buffer.data(), static_cast<std::size_t>(end - buffer.data())};
}

}  // namespace

std::string_view text_of(const ParquetValues& values,
                         ParquetFile::Kind kind,
                         std::size_t element,
                         NumberText& buffer,
                         std::int64_t value_rule) {
  const auto text = [&](auto number) {
    const char* const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
    return std::string_view(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  };
  switch (kind) {
    case ParquetFile::Kind::kTruth:
      if (value_rule != 1) return values.integers[element] != 0 ? "true" : "false";
      [[fallthrough]];
    case ParquetFile::Kind::kInteger:
      return text_of_integer(values.integers[element], buffer);
    case ParquetFile::Kind::kDays:
      return text_of_time(values.integers[element], 1, buffer);
    case ParquetFile::Kind::kSeconds:
      return text_of_time(values.integers[element], 86'400, buffer);
    case ParquetFile::Kind::kMilliseconds:
      return text_of_time(values.integers[element], 86'400'000, buffer);
    case ParquetFile::Kind::kMicroseconds:
      return text_of_time(values.integers[element], 86'400'000'000, buffer);
    case ParquetFile::Kind::kNanoseconds:
      return text_of_time(values.integers[element], 86'400'000'000'000, buffer);
    case ParquetFile::Kind::kUnsigned:
      return text(static_cast<std::uint64_t>(values.integers[element]));
    case ParquetFile::Kind::kFloat:
      return value_rule == 1 ? text(values.floats[element])
                             : text_of_real(values.floats[element], buffer);
    case ParquetFile::Kind::kDouble:
      return value_rule == 1 ? text(values.doubles[element])
                             : text_of_real(values.doubles[element], buffer);
    default:
      return values.dictionary != nullptr ? values.dictionary->at(values.codes[element])
                                          : values.texts.at(static_cast<std::int64_t>(element));
  }
}

}  // namespace satrap::data
