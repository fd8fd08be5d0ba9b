#include "src/data/look/decimal_commas.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "src/data/rows/field_parse.h"

namespace satrap::data {
namespace {

constexpr double kMostly = 0.8;  // share of the values that are numbers

/// How the numbers of a column are written.
struct NumberNotation {
  std::int64_t values = 0, numbers = 0;
  bool has_points = false, has_commas = false;
  bool is_certain = false;  // a comma that cannot divide thousands
};

bool is_decimal_digit(char c) { return c >= '0' && c <= '9'; }

/// "-39,02"
bool is_comma_number(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t comma = text.find(',');
  if (comma == 0 || comma == std::string_view::npos || comma + 1 == text.size()) return false;
  return std::ranges::all_of(text.substr(0, comma), is_decimal_digit) &&
         std::ranges::all_of(text.substr(comma + 1), is_decimal_digit);
}

/// "1,250": as many digits behind the comma as thousands have, and no 0 before it.
bool may_be_thousands(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.starts_with('0') && text.size() - text.find(',') == 4;
}

NumberNotation notation_of(const std::vector<std::string>& texts) {
  NumberNotation notation;
  for (const std::string& text : texts) {
    if (text.empty()) continue;
    ++notation.values;
    if (is_number(text)) {
      ++notation.numbers;
      notation.has_points = notation.has_points || text.find('.') != std::string::npos;
    } else if (is_comma_number(text)) {
      ++notation.numbers;
      notation.has_commas = true;
      notation.is_certain = notation.is_certain || !may_be_thousands(text);
    } else if (std::ranges::any_of(text, is_decimal_digit)) {
      return {};  // no column of numbers; words may stand for missing ones
    }
  }
  const bool is_numeric =
      static_cast<double>(notation.numbers) >= kMostly * static_cast<double>(notation.values);
  return is_numeric ? notation : NumberNotation();
}

}  // namespace

bool replace_decimal_commas(std::vector<std::vector<std::string>>& columns) {
  std::vector<std::vector<std::string>*> with_commas;
  for (std::vector<std::string>& column : columns) {
    const NumberNotation notation = notation_of(column);
    if (notation.has_points) return false;
    if (notation.is_certain) with_commas.push_back(&column);
  }
  for (std::vector<std::string>* column : with_commas) {
    for (std::string& text : *column) {
      if (is_comma_number(text)) text[text.find(',')] = '.';
    }
  }
  return !with_commas.empty();
}

}  // namespace satrap::data
