#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace satrap::data {

/// Ranks 1 .. size with probability proportional to rank^-exponent: bounded, so that no tail must
/// be folded, and without a table over the ranks, so that `size` may be anything up to 2^48.
///
/// Inverts the integral of the density over [1/2, size + 1/2] and rounds; the head, where integral
/// and sum differ, is corrected by rejection (W. Hörmann, G. Derflinger: Rejection-inversion to
/// generate variates from monotone discrete distributions, 1996). The correction stops at rank 256,
/// where it is below exponent^2 * 1e-6 relative.
///
/// Immutable: thread-safe.
class ZipfSampler {
 public:
  ZipfSampler(std::int64_t size, double exponent);  // size in [1, 2^48], exponent in [0, 10]

  /// One rank for each 64 random bits: a pure function of them, the same on every machine.
  /// `scratch` is grown as needed.
  void sample(std::span<const std::uint64_t> bits,
              std::span<std::uint64_t> ranks,
              std::vector<double>& scratch) const;

 private:
  double invert(double v) const;  // v in [0, 1) -> real rank

  double size_;
  double power_;                      // 1 - exponent, 0 if almost 0
  double inverse_power_;              // of power_
  double begin_, range_;              // of the transformed integral: x^power_, or log x
  std::vector<double> reject_below_;  // [rank]: v below which this rank is drawn again
};

}  // namespace satrap::data
