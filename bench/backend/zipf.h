#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace satrap::bench {

/// Rank of a draw u in [0, 1) among n by a power law (the continuous one, inverted).
inline std::uint64_t zipf(double u, double exponent, double n) {
  const double rank =
      std::abs(exponent - 1.0) < 1e-9
          ? std::pow(n, u)
          : std::pow((std::pow(n, 1.0 - exponent) - 1.0) * u + 1.0, 1.0 / (1.0 - exponent));
  return static_cast<std::uint64_t>(std::min(rank, n)) - 1;
}

}  // namespace satrap::bench
