#include "src/core/config_rule.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <vector>

#include "satrap/core/error.h"

namespace satrap::config_detail {
namespace {

bool has_min(const FieldRule& rule) { return rule.min > FieldRule{}.min; }
bool has_max(const FieldRule& rule) { return rule.max < FieldRule{}.max; }

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

std::string bounds(const FieldRule& rule) {
  std::vector<std::string> parts;
  if (has_min(rule)) parts.push_back((rule.min_exclusive ? "> " : ">= ") + format_number(rule.min));
  if (has_max(rule)) parts.push_back("<= " + format_number(rule.max));
  return join(parts);
}

template <class Number>
std::string broken_bounds(Number value, const FieldRule& rule, const std::string& text) {
  const auto x = static_cast<double>(value);
  const bool too_small = has_min(rule) && (rule.min_exclusive ? x <= rule.min : x < rule.min);
  const bool too_large = has_max(rule) && x > rule.max;
  if (!too_small && !too_large) return "";
  return concat("must be ", bounds(rule), ", got ", text);
}

}  // namespace

std::string broken_rule(bool, const FieldRule&) { return ""; }

std::string broken_rule(std::int64_t value, const FieldRule& rule) {
  return broken_bounds(value, rule, std::to_string(value));
}

std::string broken_rule(double value, const FieldRule& rule) {
  return broken_bounds(value, rule, format_number(value));
}

std::string broken_rule(const std::string& value, const FieldRule& rule) {
  const std::vector<std::string>& allowed = rule.one_of;
  if (allowed.empty() || std::find(allowed.begin(), allowed.end(), value) != allowed.end()) {
    return "";
  }
  std::string text = concat("must be one of: ", join(allowed), "; got \"", value, "\"");
  const std::string near = nearest(value, allowed);
  if (!near.empty()) text += "; did you mean " + near + "?";
  return text;
}

std::string describe_rule(const FieldRule& rule) {
  return rule.one_of.empty() ? bounds(rule) : "one of: " + join(rule.one_of);
}

std::string format_number(double value) {
  std::array<char, 32> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

std::string quote_string(const std::string& text) {
  static constexpr std::string_view kReserved[] = {"true", "false", "null", "yes", "no",
                                                   "on",   "off",   "y",    "n"};
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  const auto is_safe = [&](unsigned char c) {
    return is_plain(c) || c == '-' || c == '.' || c == '/';
  };
  std::string lower;
  for (const char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (!text.empty() && (std::isalpha(static_cast<unsigned char>(text[0])) != 0 || text[0] == '/') &&
      std::all_of(text.begin(), text.end(), is_safe) &&
      std::find(std::begin(kReserved), std::end(kReserved), lower) == std::end(kReserved)) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      constexpr char kHex[] = "0123456789abcdef";
      quoted += {'\\', 'x', kHex[c >> 4], kHex[c & 15]};
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace satrap::config_detail

std::string satrap::yaml_scalar(const std::string& text) {
  return config_detail::quote_string(text);
}
