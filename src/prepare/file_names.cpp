#include "src/prepare/file_names.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include <fmt/format.h>

namespace satrap::prepare {
namespace {

constexpr std::string_view kPartEnding = ".txt.zst";

/// Takes `mark` and the digits behind it from the end of a name; false if they are not there.
bool take_number_behind(std::string_view mark, std::string_view& name) {
  const std::size_t at = name.rfind(mark);
  if (at == std::string_view::npos) return false;
  const std::string_view digits = name.substr(at + mark.size());
  if (digits.empty() || !std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; })) {
    return false;
  }
  name = name.substr(0, at);
  return true;
}

}  // namespace

bool is_split_name(std::string_view name) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::ranges::all_of(name, is_plain);
}

std::string part_name(std::string_view split, std::int64_t piece) {
  return fmt::format("{}-{:05}{}", split, piece, kPartEnding);
}

bool is_part_name(std::string_view name) {
  if (!name.ends_with(kPartEnding)) return false;
  name.remove_suffix(kPartEnding.size());
  return take_number_behind("-", name) && !name.empty();
}

std::string_view complete_name(std::string_view temporary) {
  constexpr std::string_view kEnding = ".tmp";
  if (take_number_behind(".tmp-", temporary)) return temporary;
  if (!temporary.ends_with(kEnding)) return "";
  temporary.remove_suffix(kEnding.size());
  return take_number_behind(".", temporary) ? temporary : "";
}

}  // namespace satrap::prepare
