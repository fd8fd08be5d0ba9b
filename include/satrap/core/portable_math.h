#pragma once

#include <bit>
#include <cstdint>

// Logarithm and exponential made only of IEEE additions, multiplications, divisions and integer
// operations: the same bits on every machine and compiler (libm does not promise this, and changes
// with its version), whether or not the compiler vectorises a loop over them. Relative error below
// 1e-13, no special values unless stated.

namespace satrap {

/// Natural logarithm of a positive, normal, finite x.
inline double portable_log(double x) {
  constexpr double kLn2High = 0x1.62e42fefa38p-1, kLn2Low = 0x1.ef35793c7673p-45;
  constexpr std::uint64_t kSqrtHalf = 0x3FE6A09E667F3BCDULL;
  // x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 artanh f = 2 (f + f^3/3 + f^5/5 + ...).
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const std::int64_t exponent = static_cast<std::int64_t>(bits - kSqrtHalf) >> 52;
  const double m = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(exponent) << 52));
  // Integer to double by the bits, as AVX2 has no instruction for it.
  const double e =
      std::bit_cast<double>(0x4338000000000000ULL + static_cast<std::uint64_t>(exponent)) -
      0x1.8p52;
  const double f = (m - 1.0) / (m + 1.0);
  const double f2 = f * f;
  double series = 1.0 / 17;
  series = series * f2 + 1.0 / 15;
  series = series * f2 + 1.0 / 13;
  series = series * f2 + 1.0 / 11;
  series = series * f2 + 1.0 / 9;
  series = series * f2 + 1.0 / 7;
  series = series * f2 + 1.0 / 5;
  series = series * f2 + 1.0 / 3;
  series = series * f2 + 1.0;
  return e * kLn2High + (2.0 * f * series + e * kLn2Low);
}

/// log(1 + x) for a finite x > -1, exact for tiny ones: Kahan's correction restores the part of x
/// that adding 1 rounds away. x = 0 gives itself, with its sign.
inline double portable_log1p(double x) {
  const double sum = 1.0 + x, taken = sum - 1.0;
  return taken == 0.0 ? x : portable_log(sum) * (x / taken);
}

/// e^x for |x| <= 700.
inline double portable_exp(double x) {
  constexpr double kLn2High = 0x1.62e42fefa38p-1, kLn2Low = 0x1.ef35793c7673p-45;
  constexpr double kInverseLn2 = 0x1.71547652b82fep+0;
  constexpr double kRound = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  // x = n log 2 + r with |r| <= log(2) / 2; e^r by its Taylor series.
  const double shifted = x * kInverseLn2 + kRound;
  const double n = shifted - kRound;
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double series = 1.0 / 39916800;
  series = series * r + 1.0 / 3628800;
  series = series * r + 1.0 / 362880;
  series = series * r + 1.0 / 40320;
  series = series * r + 1.0 / 5040;
  series = series * r + 1.0 / 720;
  series = series * r + 1.0 / 120;
  series = series * r + 1.0 / 24;
  series = series * r + 1.0 / 6;
  series = series * r + 1.0 / 2;
  series = series * r + 1.0;
  series = series * r + 1.0;
  const std::uint64_t scale = std::bit_cast<std::uint64_t>(shifted) << 52;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(series) + scale);
}

/// 1 / (1 + e^-x). NaN stays NaN.
inline double portable_sigmoid(double x) {
  if (x != x) return x;
  const double bounded = x < -700.0 ? -700.0 : (x > 700.0 ? 700.0 : x);
  return 1.0 / (1.0 + portable_exp(-bounded));
}

}  // namespace satrap
