#pragma once

#include <cstdint>
#include <string>

#include "satrap/core/config.h"

namespace satrap::config_detail {

/// What is wrong with `value` under `rule`, for instance "must be > 0, got -1"; empty: nothing.
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

}  // namespace satrap::config_detail
