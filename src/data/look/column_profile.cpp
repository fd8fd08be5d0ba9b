#include "satrap/data/column_profile.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "src/data/look/date_text.h"
#include "src/data/rows/canonical_text.h"
#include "src/data/rows/field_parse.h"
#include "src/data/rows/time_text.h"

namespace satrap::data {
namespace {

// "\xE2\x80\x93", "\xE2\x80\x94": dashes.
constexpr std::array<std::string_view, 14> kMissingTexts{
    "",  "NULL", "null", "NaN",    "nan",  "\\N",          "?",
    "-", "--",   ".",    "(null)", "<NA>", "\xE2\x80\x93", "\xE2\x80\x94"};
constexpr double kOften = 0.02;  // share of fields with several values

/// Whether texts are all dates, and ascend.
struct Dates {
  bool are_all = false, are_ascending = false;
};

/// With the day before the month or behind it, whichever fits all and is ascending.
Dates look_at_dates(const std::vector<std::string_view>& values) {
  Dates dates;
  for (const bool day_first : {false, true}) {
    bool are_all = !values.empty(), are_ascending = true;
    std::optional<std::int64_t> last;
    for (std::size_t i = 0; are_all && i < values.size(); ++i) {
      const auto date = date_of(values[i], day_first);
      are_all = date.has_value();
      are_ascending = are_ascending && date >= last;
      last = date;
    }
    dates.are_all = dates.are_all || are_all;
    dates.are_ascending = dates.are_ascending || (are_all && are_ascending);
  }
  return dates;
}

bool is_time_number(double number) {
  double ms = 0;
  return time_of_number(number, ms) != TimeIs::kNone;
}

/// Whether the reader of rows takes a date for the time that it is.
bool is_read_as_time(std::string_view date) {
  double value = 0;
  if (time_of_text(date, value) != TimeIs::kNone) return true;
  const bool has_length = date.size() == 8 || date.size() == 14;  // 2026032114 are seconds
  return has_length && number_of(date, value) == NumberIs::kThere && is_time_number(value);
}

/// Also "17.0": what pandas makes of integers beside gaps.
bool is_integer_text(std::string_view text) {
  std::uint64_t value = 0;
  return int_of(text, value) || int_of(CanonicalText('.').of_text(text), value);
}

/// Digits alone, which 64 bits may be too few for.
bool are_digits(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

ColumnProfile::Kind kind_of(const std::vector<std::string_view>& values) {
  const auto all = [&](const auto& holds) { return std::ranges::all_of(values, holds); };
  if (values.empty()) return ColumnProfile::Kind::kText;
  if (look_at_dates(values).are_all) return ColumnProfile::Kind::kTime;
  if (all(is_integer_text)) return ColumnProfile::Kind::kInteger;
  if (all(are_digits)) return ColumnProfile::Kind::kText;
  if (all(is_number)) return ColumnProfile::Kind::kNumber;
  const std::size_t digits = values.front().size();
  const auto is_hex = [&](std::string_view text) {
    std::uint64_t value = 0;
    return text.size() == digits && hex_of(text, value);
  };
  return digits >= 6 && digits <= 16 && all(is_hex) ? ColumnProfile::Kind::kHex
                                                    : ColumnProfile::Kind::kText;
}

bool is_missing_text(const std::string& text, bool is_numeric) {
  return std::ranges::find(kMissingTexts, text) != kMissingTexts.end() ||
         (is_numeric && (is_no_number(text) || is_infinity(text)));
}

/// The few words in a column of numbers, such as "unknown" or "#DIV/0!"; empty: it is none.
std::set<std::string> words_among_numbers(const std::vector<std::string_view>& values) {
  constexpr std::size_t kFewWords = 5, kLongWord = 100;
  constexpr double kRarely = 0.05;  // share of the values
  std::set<std::string> words, numbers;
  std::size_t num_words = 0;
  for (const std::string_view text : values) {
    if (is_number(text)) {
      if (numbers.size() <= kFewWords) numbers.emplace(text);
      continue;
    }
    words.emplace(text.substr(0, kLongWord));
    ++num_words;
    if (words.size() > kFewWords || text.size() >= kLongWord) return {};
  }
  const bool is_rare =
      static_cast<double>(num_words) <= kRarely * static_cast<double>(values.size());
  return is_rare && numbers.size() > kFewWords ? words : std::set<std::string>();
}

void describe_numbers(const std::vector<std::string_view>& values, ColumnProfile& column) {
  std::vector<double>& numbers = column.numbers;
  double last = -std::numeric_limits<double>::infinity();
  column.is_ascending = column.num_distinct > 1;
  for (const std::string_view text : values) {
    number_of(text, numbers.emplace_back());
    column.is_ascending = column.is_ascending && numbers.back() >= last;
    last = numbers.back();
  }
  std::ranges::sort(numbers);
  column.min = numbers.front();
  column.max = numbers.back();
  for (const double number : numbers) column.mean += number / static_cast<double>(numbers.size());
  // A value that half of the numbers reach, or else the next one.
  const double middle = numbers[numbers.size() / 2];
  const auto at_least = std::ranges::lower_bound(numbers, middle);
  const bool is_half = 2 * (numbers.end() - at_least) <= std::ssize(numbers);
  const auto above = std::ranges::upper_bound(numbers, middle);
  column.upper_half = is_half || above == numbers.end() ? middle : *above;
}

/// "39,02", "-1.234,5", "$1,000.50", "12 %": a number as people write it, with a comma or a unit.
bool is_marked_number(std::string_view text) {
  bool has_unit = false;
  for (const std::string_view unit : {"%", "$", "\xE2\x82\xAC", "\xC2\xA3"}) {  // euro, pound
    const bool is_first = text.starts_with(unit), is_last = text.ends_with(unit);
    if (is_first) text.remove_prefix(unit.size());
    if (is_last && !text.empty()) text.remove_suffix(unit.size());
    has_unit = has_unit || is_first || is_last;
  }
  while (text.ends_with(' ')) text.remove_suffix(1);
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const auto is_part = [](char c) { return (c >= '0' && c <= '9') || c == ',' || c == '.'; };
  if (text.empty() || !std::ranges::all_of(text, is_part)) return false;
  const auto commas = std::ranges::count(text, ','), points = std::ranges::count(text, '.');
  return commas == 1 || (commas > 1 && points == 1) || (has_unit && points <= 1);
}

/// For values that are no numbers as they stand. Lists of a few integers have other lengths, too.
bool are_marked_numbers(const std::vector<std::string_view>& values) {
  constexpr double kMost = 0.8;
  const auto marked = std::ranges::count_if(values, is_marked_number);
  return static_cast<double>(marked) >= kMost * static_cast<double>(values.size()) &&
         std::ranges::all_of(values, [](std::string_view text) {
           return is_marked_number(text) || is_number(text);
         });
}

/// The elements of fields, as one separator divides them.
struct Elements {
  std::set<std::string_view> first, others,
      all;                         // different ones: of the first places, of later ones
  std::int64_t num = 0, most = 0;  // of all fields, of one
  std::size_t num_lists = 0;       // fields with several
  bool are_integers = true, have_digits = true, have_spaces = false;

  void add(std::string_view element, bool is_first) {
    while (element.starts_with(' ')) element.remove_prefix(1);
    while (element.ends_with(' ')) element.remove_suffix(1);
    (is_first ? first : others).insert(element);
    all.insert(element);
    ++num;
    are_integers = are_integers && is_integer_text(element);
    have_digits = have_digits && element.find_first_of("0123456789") != std::string_view::npos;
    have_spaces = have_spaces || element.find(' ') != std::string_view::npos;
  }

  /// Whether later places have what the first ones have, as lists do; "Berlin, DE" has not.
  bool are_alike() const {
    const auto common = std::ranges::count_if(
        others, [&](std::string_view element) { return first.contains(element); });
    return 4 * common >= std::ssize(others.size() < first.size() ? others : first);
  }
  /// Whether they are put together anew, so that they are fewer than the fields.
  bool come_back(std::int64_t num_distinct) const {
    return std::ssize(all) <= num_distinct + most || 2 * num >= 3 * std::ssize(all);
  }
};

Elements elements_of(const std::vector<std::string_view>& values, char separator) {
  Elements elements;
  for (std::string_view text : values) {
    std::int64_t number = 1;
    for (std::size_t at = 0; (at = text.find(separator)) != std::string_view::npos; ++number) {
      elements.add(text.substr(0, at), number == 1);
      text.remove_prefix(at + 1);
    }
    elements.add(text, number == 1);
    elements.num_lists += number > 1 ? 1 : 0;
    elements.most = std::max(elements.most, number);
  }
  return elements;
}

/// A separator occurs in enough fields, and the elements come back: they are put together anew.
/// Between words a space or a comma is no separator unless the elements are those of lists.
std::string find_separator(const std::vector<std::string_view>& values,
                           std::int64_t num_distinct,
                           char delimiter,
                           std::int64_t& most_elements) {
  for (const char separator : std::string_view("|;^, ")) {
    if (separator == delimiter) continue;
    const Elements elements = elements_of(values, separator);
    if (static_cast<double>(elements.num_lists) < kOften * static_cast<double>(values.size())) {
      continue;
    }
    const bool is_between_words = separator == ' ' || separator == ',';
    const bool are_ids = elements.are_integers || (elements.are_alike() && !elements.have_spaces &&
                                                   (separator == ',' || elements.have_digits));
    if (is_between_words && !are_ids) continue;
    if (!elements.come_back(num_distinct)) continue;
    most_elements = elements.most;
    return {separator};
  }
  return "";
}

/// Whether nearly all fields are lists as Python and JSON write them: "[1, 2]". Then what is within
/// the brackets is in `within`.
bool are_in_brackets(const std::vector<std::string_view>& values,
                     std::vector<std::string_view>& within) {
  within.clear();
  for (const std::string_view text : values) {
    if (text.size() < 2 || text.front() != '[' || text.back() != ']') return false;
    within.push_back(text.substr(1, text.size() - 2));
  }
  return !values.empty();
}

/// The separator of lists in brackets: NumPy writes them with spaces alone.
std::string separator_in_brackets(const std::vector<std::string_view>& within,
                                  std::int64_t& most_elements) {
  for (const char separator : {',', ' '}) {
    const Elements elements = elements_of(within, separator);
    if (elements.num_lists == 0 && separator == ',') continue;
    most_elements = elements.most;
    return {separator};
  }
  return "";
}

}  // namespace

double ColumnProfile::frequent_share(std::size_t rank) const {
  if (rank >= frequent.size()) return 0.0;
  return static_cast<double>(frequent[rank].second) / static_cast<double>(num_values);
}

bool ColumnProfile::is_missing(const std::string& text) const {
  return text.empty() || missing.contains(text);
}

bool means_infinity(const std::string& text) { return is_infinity(text); }

ColumnProfile profile_column(const std::vector<std::string>& texts, char delimiter) {
  ColumnProfile column;
  std::vector<std::string_view> values;
  const auto look = [&](bool is_numeric) {
    values.clear();
    column.missing.clear();
    for (const std::string& text : texts) {
      if (!is_missing_text(text, is_numeric)) {
        values.push_back(text);
      } else if (!text.empty()) {
        ++column.missing[text];
      }
    }
    column.kind = kind_of(values);
    return column.is_numeric();
  };
  if (!look(true)) look(false);
  if (column.kind == ColumnProfile::Kind::kText) {
    const std::set<std::string> words = words_among_numbers(values);
    std::erase_if(values, [&](std::string_view text) {
      const bool is_word = words.contains(std::string(text));
      if (is_word) ++column.missing[std::string(text)];
      return is_word;
    });
    column.kind = kind_of(values);
  }
  column.num_values = std::ssize(values);
  column.num_missing = std::ssize(texts) - column.num_values;

  std::unordered_map<std::string_view, std::int64_t> counts;
  for (const std::string_view value : values) ++counts[value];
  column.num_distinct = std::ssize(counts);
  column.frequent.assign(counts.begin(), counts.end());
  std::ranges::sort(column.frequent, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  column.frequent.resize(std::min(column.frequent.size(), ColumnProfile::kFrequent));
  if (values.empty()) return column;
  if (column.is_numeric()) {
    describe_numbers(values, column);
    column.are_read_as_times = std::ranges::all_of(column.numbers, is_time_number);
  } else {
    column.are_read_as_times =
        column.kind == ColumnProfile::Kind::kTime && std::ranges::all_of(values, is_read_as_time);
    const bool is_sorted = column.kind == ColumnProfile::Kind::kTime
                               ? look_at_dates(values).are_ascending
                               : std::ranges::is_sorted(values);
    column.is_ascending = column.num_distinct > 1 && is_sorted;
  }
  column.are_long_digits =
      column.kind == ColumnProfile::Kind::kText && std::ranges::all_of(values, are_digits);
  column.have_points =
      column.kind == ColumnProfile::Kind::kInteger &&
      std::ranges::any_of(values, [](auto text) { return text.find('.') != text.npos; });
  column.are_marked_numbers =
      column.kind == ColumnProfile::Kind::kText && are_marked_numbers(values);
  if (column.kind == ColumnProfile::Kind::kText && !column.are_marked_numbers) {
    std::vector<std::string_view> within;
    column.is_in_brackets = are_in_brackets(values, within);
    column.separator = column.is_in_brackets ? separator_in_brackets(within, column.most_elements)
                                             : find_separator(values, column.num_distinct,
                                                              delimiter, column.most_elements);
  }
  return column;
}

std::vector<std::string> elements_of(const std::string& field, const ColumnProfile& column) {
  std::vector<std::string> elements;
  std::string_view rest = field;
  if (column.is_in_brackets && rest.size() >= 2) rest = rest.substr(1, rest.size() - 2);
  const char separator = column.separator.empty() ? '|' : column.separator.front();
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(separator), rest.size());
    std::string_view element = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const auto is_around = [](char c) { return c == ' ' || c == '\'' || c == '"'; };
    while (!element.empty() && is_around(element.front())) element.remove_prefix(1);
    while (!element.empty() && is_around(element.back())) element.remove_suffix(1);
    if (!element.empty()) elements.emplace_back(element);
  }
  return elements;
}

}  // namespace satrap::data
