#pragma once

#include <cstdint>
#include <string>

#include "src/core/config_node.h"

namespace satrap::config_detail {

/// A node for its user, as the end of "expected an integer, got ...".
std::string describe(const Node& node);
std::string expected(const char* what, const Node& node);

/// Reads the value of a scalar node. Returns an empty string, or what is wrong with the node;
/// `value` may then hold anything.
std::string parse(const Node& node, bool& value);
std::string parse(const Node& node, std::int64_t& value);
std::string parse(const Node& node, double& value);
std::string parse(const Node& node, std::string& value);

/// Whether the text is an integer of at least 0, which `index` then is.
bool parse_index(const std::string& text, std::int64_t& index);

}  // namespace satrap::config_detail
