#pragma once

#include <bit>
#include <cstdint>

namespace satrap {

/// Floats of 16 bits for storing and sending; arithmetic is in float. bf16 keeps the range of a
/// float and 8 bits of precision, fp16 (IEEE 754 binary16) 11 bits within +-65504.
struct Bf16 {
  std::uint16_t bits;
};
struct Fp16 {
  std::uint16_t bits;
};

inline float to_float(float value) { return value; }
constexpr float to_float(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}
// The compiler's own type, converted by one instruction if the CPU has it. On ARM, GCC 12 knows
// only the older name.
#if defined(__aarch64__)
using CompilerFp16 = __fp16;
#else
using CompilerFp16 = _Float16;
#endif
inline float to_float(Fp16 value) {
  return static_cast<float>(std::bit_cast<CompilerFp16>(value.bits));
}

/// Rounds to nearest, ties to even; values that are too large become infinite, NaN kNanBits.
inline constexpr std::uint16_t kNanBits = 0x7FFF;
constexpr void round_to_nearest(float value, Bf16& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  out.bits = is_nan ? kNanBits : static_cast<std::uint16_t>(rounded);
}
inline void round_to_nearest(float value, float& out) { out = value; }
inline void round_to_nearest(float value, Fp16& out) {
  const auto bits = std::bit_cast<std::uint16_t>(static_cast<CompilerFp16>(value));
  out.bits = value != value ? kNanBits : bits;
}

/// Rounds to one of the two neighbours, the nearer with the higher probability, so that the mean
/// over `random`, uniform in [0, 2^16), is `value`: small changes are not lost but applied
/// occasionally. (Below the least normal fp16 the mean is off by up to 2^-16 of the distance
/// between neighbours.) A representable value does not change; a finite one stays finite, at most
/// the largest value. Host and device call these functions.
constexpr void round_stochastically(float value, std::uint32_t random, Bf16& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits & 0x80000000U, magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t rounded = (magnitude + random) >> 16;
  if (rounded > 0x7F7FU) rounded = 0x7F7FU;
  if (magnitude == 0x7F800000U) rounded = 0x7F80U;
  const std::uint32_t result = sign >> 16 | rounded;
  out.bits = magnitude > 0x7F800000U ? kNanBits : static_cast<std::uint16_t>(result);
}
constexpr void round_stochastically(float value, std::uint32_t random, Fp16& out) {
  constexpr std::int32_t kLeastExponent = -14, kDroppedBits = 13, kMaxShift = 31;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U, magnitude = bits & 0x7FFFFFFFU;
  if (magnitude >= 0x477FE000U) {  // 65504 and above: no draw
    const std::uint32_t end = magnitude == 0x7F800000U ? 0x7C00U : 0x7BFFU;
    out.bits = magnitude > 0x7F800000U ? kNanBits : static_cast<std::uint16_t>(sign | end);
    return;
  }
  const std::int32_t exponent = static_cast<std::int32_t>(magnitude >> 23) - 127;
  std::uint32_t mantissa = (magnitude & 0x007FFFFFU) | 0x00800000U;
  std::int32_t shift = kDroppedBits;
  std::uint32_t above = 0;  // what the exponent adds
  if (exponent > kLeastExponent) {
    above = static_cast<std::uint32_t>(exponent - kLeastExponent) << 10;
  } else {
    shift += kLeastExponent - exponent;
    if (shift > kMaxShift) {  // bits that no draw of 16 could turn
      mantissa = shift - kMaxShift < 24 ? mantissa >> (shift - kMaxShift) : 0U;
      shift = kMaxShift;
    }
  }
  const std::uint32_t noise = shift <= 16 ? random >> (16 - shift) : random << (shift - 16);
  out.bits = static_cast<std::uint16_t>(sign | (above + ((mantissa + noise) >> shift)));
}

/// The random numbers of a row's rounding after an update: a stream by the seed of its table and
/// step and by its mixed id. 64 bits serve four weights, 16 bits each from the lowest upward.
constexpr std::uint32_t rounding_bits(std::uint64_t bits_of_four, std::int64_t element) {
  return static_cast<std::uint32_t>(bits_of_four >> (16 * (element & 3))) & 0xFFFFU;
}

}  // namespace satrap
