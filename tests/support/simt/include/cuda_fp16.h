// Replaces NVIDIA's header of this name: IEEE half precision, rounded to nearest even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

struct __half {
  std::uint16_t bits;
};

inline float __half2float(__half x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000U) << 16;
  const std::uint32_t exponent = x.bits >> 10 & 31U;
  const std::uint32_t mantissa = x.bits & 0x3FFU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | mantissa << 13);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1.0p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112U) << 23 | mantissa << 13);
}

inline __half __float2half_rn(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  const auto with_sign = [sign](std::uint32_t rest) {
    return __half{static_cast<std::uint16_t>(sign | rest)};
  };
  if (magnitude > 0x7F800000U) return {0x7FFF};             // the NaN that the device produces
  if (magnitude >= 0x477FF000U) return with_sign(0x7C00U);  // rounds to infinity
  if (magnitude < 0x38800000U) {                            // a subnormal, or zero
    const float scaled = std::bit_cast<float>(magnitude) * 0x1.0p24F;
    return with_sign(static_cast<std::uint32_t>(std::nearbyint(scaled)));
  }
  const std::uint32_t rounded = magnitude + 0xFFFU + (magnitude >> 13 & 1U);
  return with_sign((rounded - 0x38000000U) >> 13);
}

inline std::uint16_t __half_as_ushort(__half x) { return x.bits; }
inline __half __ushort_as_half(std::uint16_t bits) { return {bits}; }
