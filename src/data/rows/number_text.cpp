#include "src/data/rows/number_text.h"

#include <charconv>
#include <cmath>

namespace satrap::data {
namespace {

/// Python's repr, which also pandas and JSON have; float: of the nearest text of 32 bits.
template <class Real>
std::string_view text_of_any_real(Real x, NumberText& buffer) {
  constexpr Real kLeastFixed = static_cast<Real>(1e-4), kFirstScientific = static_cast<Real>(1e16);
  const Real size = std::fabs(x);
  if (size < kFirstScientific && std::trunc(x) == x) {
    return text_of_integer(static_cast<std::int64_t>(x), buffer);
  }
  const bool is_fixed = (size >= kLeastFixed && size < kFirstScientific) || !std::isfinite(x);
  const char* const end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), x,
                    is_fixed ? std::chars_format::fixed : std::chars_format::scientific)
          .ptr;
  return {buffer.data(), static_cast<std::size_t>(end - buffer.data())};
}

double decimal_of_text(float x) {
  NumberText buffer;
  const auto text = std::to_chars(buffer.data(), buffer.data() + buffer.size(), x).ptr;
  double value = 0;
  std::from_chars(buffer.data(), text, value);
  return value;
}

}  // namespace

std::string_view text_of_integer(std::int64_t value, NumberText& buffer) {
  const char* const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), static_cast<std::size_t>(end - buffer.data())};
}

std::string_view text_of_real(double x, NumberText& buffer) { return text_of_any_real(x, buffer); }
std::string_view text_of_real(float x, NumberText& buffer) { return text_of_any_real(x, buffer); }

double decimal_of(float x) {
  constexpr std::array<double, 10> kPowers{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
  constexpr double kExact = 0x1p53;
  const auto wide = static_cast<double>(x);
  if (!(std::fabs(wide) >= 1e-4)) return x == 0.0F || std::isnan(x) ? wide : decimal_of_text(x);
  // As few digits behind the point as tell the float; both operands of the division are exact.
  for (const double power : kPowers) {
    const double digits = std::nearbyint(wide * power);
    if (std::fabs(digits) >= kExact) return wide;
    if (static_cast<float>(digits / power) == x) return digits / power;
  }
  return decimal_of_text(x);
}

}  // namespace satrap::data
