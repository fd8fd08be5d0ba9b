#include "satrap/data/column_profile.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "src/data/date_text.h"
#include "src/data/field_parse.h"

namespace satrap::data {
namespace {

constexpr std::array<std::string_view, 9> kMissingTexts{"",    "NULL", "null", "NaN",   "nan",
                                                        "\\N", "?",    "-",    "(null)"};
constexpr std::array<std::string_view, 5> kMissingNumbers{"NA", "N/A", "n/a", "None", "none"};
constexpr double kOften = 0.02;  // share of fields with several values

/// Of texts that are all dates.
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

bool is_integer(std::string_view text) {
  std::uint64_t value = 0;
  return int_of(text, value);
}

ColumnProfile::Kind kind_of(const std::vector<std::string_view>& values) {
  const auto all = [&](const auto& holds) { return std::ranges::all_of(values, holds); };
  if (values.empty()) return ColumnProfile::Kind::kText;
  if (look_at_dates(values).are_all) return ColumnProfile::Kind::kTime;
  if (all(is_integer)) return ColumnProfile::Kind::kInteger;
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
         (is_numeric && std::ranges::find(kMissingNumbers, text) != kMissingNumbers.end());
}

/// The few words in a column of numbers, such as "unknown" or "#DIV/0!"; empty: it is none.
std::set<std::string> words_among_numbers(const std::vector<std::string_view>& values) {
  constexpr std::size_t kFewWords = 5;
  constexpr double kRarely = 0.05;  // share of the values
  std::set<std::string> words, numbers;
  std::size_t num_words = 0;
  for (const std::string_view text : values) {
    if (is_number(text)) {
      if (numbers.size() <= kFewWords) numbers.emplace(text);
      continue;
    }
    words.emplace(text);
    ++num_words;
    if (words.size() > kFewWords) return {};
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
    float value = 0;
    number_of(text, value);
    numbers.push_back(static_cast<double>(value));
    double exact = numbers.back();  // ids and milliseconds that are near are one float
    whole_of(text, exact);
    column.is_ascending = column.is_ascending && exact >= last;
    last = exact;
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

/// Of values that are no numbers as they stand. Lists of a few integers have other lengths, too.
bool are_marked_numbers(const std::vector<std::string_view>& values) {
  constexpr double kMost = 0.8;
  const auto marked = std::ranges::count_if(values, is_marked_number);
  return static_cast<double>(marked) >= kMost * static_cast<double>(values.size()) &&
         std::ranges::all_of(values, [](std::string_view text) {
           return is_marked_number(text) || is_number(text);
         });
}

/// A separator occurs in enough fields, the parts are never empty, and fewer parts than fields are
/// different: they are put together anew. Between words a space is no separator, between integers
/// it is.
std::string find_separator(const std::vector<std::string_view>& values,
                           std::int64_t num_distinct,
                           char delimiter,
                           std::int64_t& most_elements) {
  for (const char separator : std::string_view("|;, ")) {
    if (separator == delimiter) continue;
    std::set<std::string_view> parts;
    std::size_t separated = 0;
    std::size_t with_integers = 0;
    std::int64_t most = 0;
    for (std::string_view text : values) {
      std::int64_t elements = 1;
      bool are_integers = true;
      for (std::size_t at = 0; (at = text.find(separator)) != std::string_view::npos; ++elements) {
        are_integers = are_integers && is_integer(text.substr(0, at));
        parts.insert(text.substr(0, at));
        text.remove_prefix(at + 1);
      }
      are_integers = are_integers && is_integer(text);
      parts.insert(text);
      separated += elements > 1 ? 1 : 0;
      with_integers += elements > 1 && are_integers ? 1 : 0;
      most = std::max(most, elements);
    }
    if (static_cast<double>(separated) < kOften * static_cast<double>(values.size())) continue;
    const bool is_between_words = separator == ' ' || separator == ',';
    if (is_between_words && with_integers < separated) continue;
    if (std::ssize(parts) > num_distinct + most) continue;
    most_elements = most;
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
  return text.empty() || std::ranges::find(missing, text) != missing.end();
}

ColumnProfile profile_column(const std::vector<std::string>& texts, char delimiter) {
  ColumnProfile column;
  std::vector<std::string_view> values;
  std::set<std::string> missing;
  const auto look = [&](bool is_numeric) {
    values.clear();
    missing.clear();
    for (const std::string& text : texts) {
      if (!is_missing_text(text, is_numeric)) {
        values.push_back(text);
      } else if (!text.empty()) {
        missing.insert(text);
      }
    }
    column.kind = kind_of(values);
    return column.is_numeric();
  };
  if (!look(true)) look(false);
  if (column.kind == ColumnProfile::Kind::kText) {
    const std::set<std::string> words = words_among_numbers(values);
    missing.insert(words.begin(), words.end());
    std::erase_if(values, [&](std::string_view text) { return words.contains(std::string(text)); });
    column.kind = kind_of(values);
  }
  column.missing.assign(missing.begin(), missing.end());
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
  } else {
    const bool is_sorted = column.kind == ColumnProfile::Kind::kTime
                               ? look_at_dates(values).are_ascending
                               : std::ranges::is_sorted(values);
    column.is_ascending = column.num_distinct > 1 && is_sorted;
  }
  column.are_marked_numbers =
      column.kind == ColumnProfile::Kind::kText && are_marked_numbers(values);
  if (column.kind == ColumnProfile::Kind::kText && !column.are_marked_numbers) {
    column.separator = find_separator(values, column.num_distinct, delimiter, column.most_elements);
  }
  return column;
}

}  // namespace satrap::data
