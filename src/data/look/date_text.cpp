#include "src/data/look/date_text.h"

#include <algorithm>
#include <array>

#include "satrap/core/text.h"

namespace satrap::data {
namespace {

bool is_digit_char(char c) { return c >= '0' && c <= '9'; }

/// Takes what it is asked for from the front of a text.
class DateCursor {
 public:
  explicit DateCursor(std::string_view text) : rest_(text) {}

  bool is_at_end() const { return rest_.empty(); }
  char peek() const { return rest_.empty() ? '\0' : rest_.front(); }

  /// The character taken, if it is one of these.
  char take(std::string_view wanted) {
    if (rest_.empty() || wanted.find(rest_.front()) == std::string_view::npos) return '\0';
    const char taken = rest_.front();
    rest_.remove_prefix(1);
    return taken;
  }

  /// A number of at most nine digits; returns how many it has, 0: none is here.
  int number(std::int64_t& value) {
    constexpr int kMostDigits = 9;
    int digits = 0;
    for (value = 0; digits < kMostDigits && is_digit_char(peek()); ++digits) {
      value = 10 * value + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return is_digit_char(peek()) ? 0 : digits;
  }

  std::string_view word() {
    const auto end = std::ranges::find_if(
        rest_, [](char c) { return (c < 'A' || c > 'Z') && (c < 'a' || c > 'z'); });
    const std::string_view word = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    rest_.remove_prefix(word.size());
    return word;
  }

 private:
  std::string_view rest_;
};

struct CalendarDate {
  std::int64_t year = 0, month = 0, day = 0;
};

bool is_valid(const CalendarDate& date) {
  return date.year >= 1900 && date.year <= 2100 && date.month >= 1 && date.month <= 12 &&
         date.day >= 1 && date.day <= 31;
}

/// By its first three letters, or all; 0: it is none.
std::int64_t month_of(std::string_view word) {
  constexpr std::array<std::string_view, 12> kMonths{
      "january", "february", "march",     "april",   "may",      "june",
      "july",    "august",   "september", "october", "november", "december"};
  const std::string lower = lower_case(word);
  for (std::size_t m = 0; lower.size() >= 3 && m < kMonths.size(); ++m) {
    if (lower == kMonths[m] || lower == kMonths[m].substr(0, 3)) {
      return static_cast<std::int64_t>(m) + 1;
    }
  }
  return 0;
}

bool is_weekday(std::string_view word) {
  constexpr std::array<std::string_view, 7> kDays{"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
  return std::ranges::find(kDays, lower_case(word.substr(0, 3))) != kDays.end();
}

std::int64_t full_year(std::int64_t year, int digits) {
  return digits == 2 ? year + (year < 70 ? 2000 : 1900) : year;
}

/// Three numbers with the same character between them.
bool take_numeric(DateCursor& text, bool day_first, CalendarDate& date) {
  std::int64_t a = 0, b = 0, c = 0;
  const int digits_of_a = text.number(a);
  const char separator = text.take("-/.");
  const int digits_of_b = text.number(b);
  if (separator == '\0' || digits_of_b < 1 || digits_of_b > 2) return false;
  if (text.take({&separator, 1}) == '\0') return false;
  const int digits_of_c = text.number(c);
  if (digits_of_a == 4 && (digits_of_c == 1 || digits_of_c == 2)) {
    date = {a, b, c};
    return true;  // also 0000-00-00
  }
  if (digits_of_a < 1 || digits_of_a > 2) return false;
  if (digits_of_c != 4 && (digits_of_c != 2 || separator != '/')) return false;
  date = {full_year(c, digits_of_c), day_first ? b : a, day_first ? a : b};
  return is_valid(date);
}

/// With the name of its month, behind the day or before it.
bool take_named(DateCursor& text, CalendarDate& date) {
  std::string_view word = text.word();
  if (is_weekday(word)) {
    text.take(",");
    text.take(" ");
    word = text.word();
  }
  int digits = 0;
  date.month = month_of(word);
  if (date.month > 0) {
    text.take(" ");
    digits = text.number(date.day);
    text.take(",");
    text.take(" ");
  } else {
    digits = word.empty() ? text.number(date.day) : 0;
    text.take("- ");
    date.month = month_of(text.word());
    text.take("- ");
  }
  if (digits < 1 || digits > 2) return false;
  const int digits_of_year = text.number(date.year);
  date.year = full_year(date.year, digits_of_year);
  return (digits_of_year == 2 || digits_of_year == 4) && is_valid(date);
}

/// A time of day to the end, in milliseconds; an empty text is the beginning of the day.
std::optional<std::int64_t> take_time(DateCursor& text) {
  while (text.take(" ,") != '\0') continue;
  text.take("T");
  if (text.is_at_end()) return 0;
  std::int64_t hour = 0, minute = 0, second = 0, fraction = 0;
  if (text.number(hour) == 0 || hour > 24) return std::nullopt;
  if (text.take(":") != '\0' && text.number(minute) != 2) return std::nullopt;
  if (text.take(":") != '\0' && text.number(second) != 2) return std::nullopt;
  if (text.take(".") != '\0') {
    int digits = text.number(fraction);
    for (; digits < 3; ++digits) fraction *= 10;
    for (; digits > 3; --digits) fraction /= 10;
  }
  text.take(" ");
  std::string word = lower_case(text.word());
  if (word == "am" || word == "pm") {
    hour = hour % 12 + (word == "pm" ? 12 : 0);
    word.clear();
  }
  if (!word.empty() && word != "z" && word != "utc" && word != "gmt") return std::nullopt;
  std::int64_t zone = 0;
  if (text.take("+-") != '\0') {
    text.number(zone);
    text.take(":");
    text.number(zone);
  }
  if (!text.is_at_end()) return std::nullopt;
  return ((hour * 60 + minute) * 60 + second) * 1000 + fraction;
}

std::int64_t as_number(const CalendarDate& date, std::int64_t ms_of_day) {
  constexpr std::int64_t kDay = 86'400'000;
  return ((date.year * 13 + date.month) * 32 + date.day) * kDay + ms_of_day;
}

/// yyyymmdd, maybe with hh or hhmmss.
std::optional<std::int64_t> compact_date(std::string_view text) {
  const bool has_length = text.size() == 8 || text.size() == 10 || text.size() == 14;
  if (!has_length || !std::ranges::all_of(text, is_digit_char)) return std::nullopt;
  const auto part = [&](std::size_t begin, std::size_t size) {
    std::int64_t value = 0;
    if (begin < text.size()) DateCursor(text.substr(begin, size)).number(value);
    return value;
  };
  const CalendarDate date{part(0, 4), part(4, 2), part(6, 2)};
  const std::int64_t hour = part(8, 2), minute = part(10, 2), second = part(12, 2);
  if (!is_valid(date) || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  return as_number(date, ((hour * 60 + minute) * 60 + second) * 1000);
}

}  // namespace

std::optional<std::int64_t> date_of(std::string_view text, bool day_first) {
  if (const auto compact = compact_date(text)) return compact;
  CalendarDate date;
  DateCursor rest(text);
  if (!take_numeric(rest, day_first, date)) {
    rest = DateCursor(text);
    if (!take_named(rest, date)) return std::nullopt;
  }
  const auto time = take_time(rest);
  if (!time) return std::nullopt;
  return as_number(date, *time);
}

}  // namespace satrap::data
