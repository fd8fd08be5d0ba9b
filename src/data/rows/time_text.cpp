#include "src/data/rows/time_text.h"

#include <chrono>
#include <cmath>

namespace satrap::data {
namespace {

using std::chrono::sys_days;
using std::chrono::year_month_day;

constexpr std::int64_t kMsPerDay = 86'400'000;

/// Takes the parts of a time from the front of a text.
class TimeCursor {
 public:
  explicit TimeCursor(std::string_view text) : rest_(text) {}

  bool is_at_end() const { return rest_.empty(); }

  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool take_spaces() {
    const bool any = take(' ');
    while (take(' ')) continue;
    return any;
  }

  /// At most four digits; returns how many there are.
  int take_digits(int& value) {
    int digits = 0;
    for (value = 0; digits < 4 && next_is_digit(); ++digits) {
      value = 10 * value + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return digits;
  }
  bool take_two(int& value) { return take_digits(value) == 2; }

  /// Thousandths; any number of digits.
  bool take_fraction(int& ms) {
    if (!next_is_digit()) return false;
    int unit = 100;
    for (ms = 0; next_is_digit(); unit /= 10) {
      ms += unit * (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return true;
  }

 private:
  bool next_is_digit() const {
    return !rest_.empty() && '0' <= rest_.front() && rest_.front() <= '9';
  }

  std::string_view rest_;
};

struct DateParts {
  int year = 0, month = 0, day = 0;

  bool is_zero() const { return year == 0 && month == 0 && day == 0; }
};

bool take_date(TimeCursor& text, DateParts& date) {
  const int digits = text.take_digits(date.year);
  const auto take_part = [&](int& part) {
    const int size = text.take_digits(part);
    return size == 1 || size == 2;
  };
  if (digits == 4) {
    const char separator = text.take('-') ? '-' : '/';
    if (separator == '/' && !text.take('/')) return false;
    return take_part(date.month) && text.take(separator) && take_part(date.day);
  }
  date.day = date.year;
  return (digits == 1 || digits == 2) && text.take('.') && take_part(date.month) &&
         text.take('.') && text.take_digits(date.year) == 4;
}

/// To the end of the text, in milliseconds from the beginning of the day in UTC.
bool take_time(TimeCursor& text, std::int64_t& ms) {
  if (!text.take('T') && !text.take('t') && !text.take_spaces()) return false;
  int hour = 0, minute = 0, second = 0, fraction = 0;
  const int digits_of_hour = text.take_digits(hour);
  if (digits_of_hour < 1 || digits_of_hour > 2 || hour > 23) return false;
  if (!text.take(':') || !text.take_two(minute) || minute > 59) return false;
  if (text.take(':')) {
    if (!text.take_two(second) || second > 60) return false;
    if ((text.take('.') || text.take(',')) && !text.take_fraction(fraction)) return false;
  }
  ms = ((hour * 60 + minute) * 60 + second) * std::int64_t{1000} + fraction;
  if (text.is_at_end()) return true;
  text.take_spaces();
  if (text.take('Z') || text.take('z') || text.take("UTC") || text.take("GMT")) {
    return text.is_at_end();
  }
  const bool is_ahead = text.take('+');
  if (!is_ahead && !text.take('-')) return false;
  int hours = 0, minutes = 0;
  const int digits = text.take_digits(hours);
  if (digits == 4) {
    minutes = hours % 100;
    hours /= 100;
  } else if (digits != 2 || (text.take(':') && !text.take_two(minutes))) {
    return false;
  }
  if (hours > 23 || minutes > 59 || !text.is_at_end()) return false;
  ms += (hours * 60 + minutes) * std::int64_t{is_ahead ? -60'000 : 60'000};
  return true;
}

TimeIs time_in_years(std::int64_t days, std::int64_t ms_of_day, double& ms) {
  constexpr std::int64_t kFirst = -62'135'596'800'000, kLast = 253'402'300'799'999;
  const std::int64_t time = days * kMsPerDay + ms_of_day;
  if (time < kFirst || time > kLast) return TimeIs::kNone;
  ms = static_cast<double>(time);
  return TimeIs::kThere;
}

TimeIs time_of_date(const DateParts& date, std::int64_t ms_of_day, double& ms) {
  const year_month_day day(std::chrono::year(date.year),
                           std::chrono::month(static_cast<unsigned>(date.month)),
                           std::chrono::day(static_cast<unsigned>(date.day)));
  if (!day.ok()) return TimeIs::kNone;
  return time_in_years(sys_days(day).time_since_epoch().count(), ms_of_day, ms);
}

/// yyyymmdd
TimeIs time_of_digits(std::int64_t digits, std::int64_t ms_of_day, double& ms) {
  return time_of_date({.year = static_cast<int>(digits / 10'000),
                       .month = static_cast<int>(digits / 100 % 100),
                       .day = static_cast<int>(digits % 100)},
                      ms_of_day, ms);
}

/// A number of eight or 14 digits that is a date of the years 1900 to 2100.
TimeIs time_of_compact(double number, double& ms) {
  constexpr double kFirstDate = 19'000'101, kLastDate = 21'001'231, kPerDate = 1'000'000;
  if (std::trunc(number) != number) return TimeIs::kNone;
  if (kFirstDate <= number && number <= kLastDate) {
    return time_of_digits(static_cast<std::int64_t>(number), 0, ms);
  }
  if (number < kFirstDate * kPerDate || number >= (kLastDate + 1) * kPerDate) return TimeIs::kNone;
  const auto digits = static_cast<std::int64_t>(number);
  const std::int64_t hour = digits / 10'000 % 100, minute = digits / 100 % 100;
  const std::int64_t second = digits % 100;
  if (hour > 23 || minute > 59 || second > 60) return TimeIs::kNone;
  return time_of_digits(digits / 1'000'000, ((hour * 60 + minute) * 60 + second) * 1000, ms);
}

}  // namespace

TimeIs time_of_text(std::string_view text, double& ms) {
  TimeCursor rest(text);
  DateParts date;
  std::int64_t ms_of_day = 0;
  if (!take_date(rest, date)) return TimeIs::kNone;
  if (!rest.is_at_end() && !take_time(rest, ms_of_day)) return TimeIs::kNone;
  return date.is_zero() ? TimeIs::kMissing : time_of_date(date, ms_of_day, ms);
}

TimeIs time_of_number(double number, double& ms) {
  constexpr double kFirstMs = 1e11, kFirstUs = 1e14, kFirstNs = 1e17, kNoTime = 1e21;
  if (time_of_compact(number, ms) == TimeIs::kThere) return TimeIs::kThere;
  const double size = std::fabs(number);
  if (size >= kNoTime) return TimeIs::kNone;
  const double found = size < kFirstMs   ? std::floor(std::nearbyint(number * 1e6) / 1e3)
                       : size < kFirstUs ? std::floor(number)
                       : size < kFirstNs ? std::floor(number / 1e3)
                                         : std::floor(std::nearbyint(number / 1e3) / 1e3);
  return time_in_years(0, static_cast<std::int64_t>(found), ms);
}

}  // namespace satrap::data
