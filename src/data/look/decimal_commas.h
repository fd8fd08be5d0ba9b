#pragma once

#include <string>
#include <vector>

namespace satrap::data {

/// If the numbers of some columns are written with a decimal comma, "39,02", and those of none with
/// a decimal point: writes them with points and returns true. Commas that may as well divide
/// thousands, "1,250" in all of a column, are none.
bool replace_decimal_commas(std::vector<std::vector<std::string>>& columns);

}  // namespace satrap::data
