#include "src/data/rows/canonical_text.h"

#include <algorithm>
#include <cmath>

#include "src/data/rows/field_parse.h"

namespace satrap::data {
namespace {

/// From here on not every whole number is a double.
constexpr double kWholeNumbers = 0x1p53;

}  // namespace

std::string_view CanonicalText::of_word(std::string_view text) {
  if (is_word(text, "true")) return "true";
  return is_word(text, "false") ? "false" : text;
}

std::string_view CanonicalText::of_digits(std::string_view text) {
  std::string_view rest = text;
  const bool is_negative = rest.front() == '-';
  if (is_negative || rest.front() == '+') rest.remove_prefix(1);
  const std::size_t digits_end = std::min(rest.find_first_not_of("0123456789"), rest.size());
  std::string_view whole = rest.substr(0, digits_end);
  rest.remove_prefix(digits_end);
  if (rest.empty() || whole.empty()) return text;
  const bool has_point = rest.front() == decimal_;
  if (!has_point && !rest.starts_with("e+") && !rest.starts_with("E+")) return text;
  if (!has_point || rest.find_first_not_of('0', 1) != std::string_view::npos) {
    return of_exponent(text);
  }
  while (whole.size() > 1 && whole.front() == '0') whole.remove_prefix(1);
  if (!is_negative || whole == "0") return whole;
  digits_.assign(1, '-').append(whole);
  return digits_;
}

/// The canonical text of a text that may be a number with an exponent.
std::string_view CanonicalText::of_exponent(std::string_view text) {
  if (text.find_first_of("eE") == std::string_view::npos) return text;
  digits_ = text;
  std::ranges::replace(digits_, decimal_, '.');
  double value = 0;
  const bool is_whole = number_of(digits_, value) == NumberIs::kThere &&
                        std::fabs(value) < kWholeNumbers && std::trunc(value) == value;
  return is_whole ? text_of_real(value, buffer_) : text;
}

std::string_view CanonicalText::of_number(std::string_view number) {
  double value = 0;
  if (number.find_first_of(".eE") == std::string_view::npos ||
      number_of(number, value) == NumberIs::kNone) {
    return number;
  }
  return text_of_real(value, buffer_);
}

}  // namespace satrap::data
