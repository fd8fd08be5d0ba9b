#pragma once

#include <string>
#include <vector>

namespace satrap::data {

/// "C1..C26" as C1, C2 ... C26; any other name as itself. Both ends have the same letters, and the
/// second number is not smaller. Leading zeros are kept: C01..C26.
std::vector<std::string> expand_range(const std::string& name);

}  // namespace satrap::data
