#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

/// bf16 and fp16 by their definitions, for tests: slow, and independent of the code under test.
namespace satrap::testing {

struct SmallFloat {
  int mantissa_bits, min_exponent;  // of normal numbers
  float largest;
};
inline constexpr SmallFloat kBfloat16{7, -126, 0x1.FEp127F};
inline constexpr SmallFloat kHalf{10, -14, 65504.0F};

/// Distance between neighbouring representable numbers around |x|.
inline double spacing(const SmallFloat& type, float x) {
  const int exponent = x == 0.0F ? type.min_exponent : std::max(std::ilogb(x), type.min_exponent);
  return std::ldexp(1.0, exponent - type.mantissa_bits);
}

/// The nearest representable number; ties go to even.
inline float round_nearest(const SmallFloat& type, float x) {
  if (!std::isfinite(x)) return x;
  const double unit = spacing(type, x);
  const double rounded = std::nearbyint(static_cast<double>(x) / unit) * unit;
  if (std::abs(rounded) > static_cast<double>(type.largest)) {
    return std::copysign(std::numeric_limits<float>::infinity(), x);
  }
  return std::copysign(static_cast<float>(std::abs(rounded)), x);
}

/// Rounds up in magnitude if the excess part, in [0, 1) of a unit, plus draw reaches 1.
inline float round_stochastic(const SmallFloat& type, float x, double draw) {
  if (!std::isfinite(x)) return x;
  const double unit = spacing(type, x);
  const double units = std::abs(static_cast<double>(x)) / unit;
  const double down = std::floor(units);
  double rounded = (units - down + draw >= 1.0 ? down + 1.0 : down) * unit;
  if (rounded > static_cast<double>(type.largest)) rounded = static_cast<double>(type.largest);
  return std::copysign(static_cast<float>(rounded), x);
}

/// Bits of a representable number, and back.
inline std::uint16_t to_bits(const SmallFloat& type, float x) {
  if (type.mantissa_bits == 7) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
  }
  const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isinf(x)) return static_cast<std::uint16_t>(sign | 0x7C00);
  const double magnitude = std::abs(static_cast<double>(x));
  if (magnitude < 0x1.0p-14) {
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(magnitude * 0x1.0p24));
  }
  const int exponent = std::ilogb(magnitude);
  const auto mantissa = static_cast<std::uint16_t>(std::ldexp(magnitude, 10 - exponent) - 1024.0);
  return static_cast<std::uint16_t>(sign | (exponent + 15) << 10 | mantissa);
}

inline float from_bits(const SmallFloat& type, std::uint16_t bits) {
  if (type.mantissa_bits == 7) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  if (exponent == 31) return sign * std::numeric_limits<float>::infinity();
  return sign * (exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                               : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25));
}

}  // namespace satrap::testing
