#include "src/data/terms/column_range.h"

#include <charconv>
#include <cstdint>
#include <string_view>

namespace satrap::data {
namespace {

constexpr std::int64_t kMaxColumns = 100'000;

/// Splits "C26" into "C" and 26. False without digits at the end, or with too many.
bool split_number(std::string_view text,
                  std::string_view& letters,
                  std::string_view& digits,
                  std::int64_t& number) {
  const std::size_t last_letter = text.find_last_not_of("0123456789");
  const std::size_t first_digit = last_letter == std::string_view::npos ? 0 : last_letter + 1;
  letters = text.substr(0, first_digit);
  digits = text.substr(first_digit);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return !digits.empty() && error == std::errc{};
}

}  // namespace

std::vector<std::string> expand_range(const std::string& name) {
  const std::string_view text = name;
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return {name};
  std::string_view letters, last_letters, first_digits, last_digits;
  std::int64_t first = 0;
  std::int64_t last = 0;
  if (!split_number(text.substr(0, dots), letters, first_digits, first) ||
      !split_number(text.substr(dots + 2), last_letters, last_digits, last) ||
      letters != last_letters || last < first || last - first >= kMaxColumns) {
    return {name};
  }
  const std::size_t width = first_digits.starts_with('0') ? first_digits.size() : 0;
  std::vector<std::string> names;
  for (std::int64_t i = first; i <= last; ++i) {
    std::string digits = std::to_string(i);
    if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
    names.push_back(std::string(letters) + digits);
  }
  return names;
}

}  // namespace satrap::data
