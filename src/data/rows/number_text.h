#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace satrap::data {

/// Room for the text of any number or time.
using NumberText = std::array<char, 32>;

std::string_view text_of_integer(std::int64_t value, NumberText& buffer);

/// A number as Python writes it, but that whole numbers below 1e16 have no ".0".
std::string_view text_of_real(double x, NumberText& buffer);
std::string_view text_of_real(float x, NumberText& buffer);

/// The double that is nearest to the shortest decimal text of a float: what a file of text would
/// have of 0.1F is 0.1.
double decimal_of(float x);

}  // namespace satrap::data
