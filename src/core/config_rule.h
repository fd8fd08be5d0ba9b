#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "satrap/core/config.h"

namespace satrap::config_detail {

/// The rule that `value` breaks, in words, for instance "must be > 0, got -1"; empty: nothing.
std::string broken_rule(bool value, const FieldRule& rule);
std::string broken_rule(std::int64_t value, const FieldRule& rule);
std::string broken_rule(double value, const FieldRule& rule);
std::string broken_rule(const std::string& value, const FieldRule& rule);

/// The rule in words: "> 0, <= 1" or "one of: sgd, adagrad"; empty: any value is allowed.
std::string describe_rule(const FieldRule& rule);

/// The shortest text that reads back as the same number.
std::string format_number(double value);

/// `text` as a YAML scalar, quoted where it would not read back as this string. With `in_list`, as
/// an element of a flow list.
std::string quote_string(const std::string& text);

/// A value as it is written in a configuration.
inline std::string to_yaml(bool value) { return value ? "true" : "false"; }
inline std::string to_yaml(std::int64_t value) { return std::to_string(value); }
inline std::string to_yaml(double value) { return format_number(value); }
inline std::string to_yaml(const std::string& value) { return quote_string(value); }
template <class T>
std::string to_yaml(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) {
    if (!text.empty()) text += ", ";
    text += to_yaml(value);
  }
  return "[" + text + "]";
}

/// As a field of this rule is written.
template <class T>
std::string to_yaml(const T& value, const FieldRule& rule) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    if (value == 0 && !rule.zero_word.empty()) return std::string(rule.zero_word);
  }
  return to_yaml(value);
}

}  // namespace satrap::config_detail
