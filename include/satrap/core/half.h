#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace satrap {

/// Floats of 16 bits, to store and to send; computed with is float. bf16 keeps the range of a float
/// and 8 bits of precision, fp16 (IEEE 754 binary16) 11 bits within +-65504.
struct Bf16 {
  std::uint16_t bits;
};
struct Fp16 {
  std::uint16_t bits;
};

inline float to_float(float value) { return value; }
inline float to_float(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}
// The compiler's own type: converted by one instruction where there is one. On ARM, GCC 12 has it
// under its older name only.
#if defined(__aarch64__)
using CompilerFp16 = __fp16;
#else
using CompilerFp16 = _Float16;
#endif
inline float to_float(Fp16 value) {
  return static_cast<float>(std::bit_cast<CompilerFp16>(value.bits));
}

/// To nearest, ties to even; what is too large becomes infinite, NaN stays NaN.
inline void round_to_nearest(float value, Bf16& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  const std::uint32_t rounded =
      is_nan ? (bits >> 16) | 0x40U : (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  out.bits = static_cast<std::uint16_t>(rounded);
}
inline void round_to_nearest(float value, float& out) { out = value; }
inline void round_to_nearest(float value, Fp16& out) {
  out.bits = std::bit_cast<std::uint16_t>(static_cast<CompilerFp16>(value));
}

/// Up or down to one of the two neighbours, the nearer the likelier, so that the mean over `random`
/// (32 uniform bits) is `value`: small changes are not lost, they happen now and then. A value that
/// can be represented stays as it is; a finite one stays finite: the largest there is.
inline void round_stochastically(float value, std::uint32_t random, Bf16& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits & 0x80000000U, magnitude = bits & 0x7FFFFFFFU;
  if (magnitude >= 0x7F800000U) return round_to_nearest(value, out);
  const std::uint32_t rounded = std::min((magnitude + (random >> 16)) >> 16, 0x7F7FU);
  out.bits = static_cast<std::uint16_t>((sign >> 16) | rounded);
}
inline void round_stochastically(float value, std::uint32_t random, Fp16& out) {
  constexpr int kLeastExponent = -14, kDroppedBits = 13;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits & 0x80000000U, magnitude = bits & 0x7FFFFFFFU;
  if (magnitude >= 0x7F800000U) return round_to_nearest(value, out);
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  const std::uint64_t mantissa = (magnitude & 0x007FFFFFU) | 0x00800000U;
  const int shift = kDroppedBits + std::max(0, kLeastExponent - exponent);
  if (shift >= 56) {  // less than 2^-32 of the smallest there is
    out.bits = static_cast<std::uint16_t>(sign >> 16);
    return;
  }
  const auto wide = static_cast<std::uint64_t>(random);
  const std::uint64_t noise = shift <= 32 ? wide >> (32 - shift) : wide << (shift - 32);
  const std::uint64_t steps = (mantissa + noise) >> shift;  // beyond 2^10: into the exponent
  const std::uint64_t above =
      exponent > kLeastExponent ? static_cast<std::uint64_t>(exponent - kLeastExponent) << 10 : 0;
  const std::uint64_t rounded = std::min<std::uint64_t>(above + steps, 0x7BFFU);
  out.bits = static_cast<std::uint16_t>((sign >> 16) | rounded);
}

}  // namespace satrap
