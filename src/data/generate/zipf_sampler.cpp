#include "src/data/generate/zipf_sampler.h"

#include <algorithm>
#include <cmath>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/core/portable_math.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kCorrectedRanks = 256;
constexpr std::int64_t kMaxSize = std::int64_t{1} << 48;

double uniform(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

}  // namespace

// With s the exponent, a = 1 - s and h(x) = x^-s, an integral of h is H(x) = (x^a - 1) / a, or log
// x for a = 0. H runs from H(3/2) - h(1), which makes rank 1 exact, to H(size + 1/2). All of it is
// kept as T = 1 + a H, which is x^a (for a = 0: T = H): linear in H, and inverted by one power.
ZipfSampler::ZipfSampler(std::int64_t size, double exponent)
    : size_(static_cast<double>(size)),
      power_(std::abs(1.0 - exponent) < 1e-6 ? 0.0 : 1.0 - exponent),
      inverse_power_(power_ == 0.0 ? 0.0 : 1.0 / power_) {
  SATRAP_CHECK(size >= 1 && size <= kMaxSize, "zipf over ", size, " ranks");
  SATRAP_CHECK(exponent >= 0.0 && exponent <= 10.0, "zipf exponent ", exponent);
  const auto transformed = [&](double x) {  // T at x
    return power_ == 0.0 ? portable_log(x) : portable_exp(power_ * portable_log(x));
  };
  const auto density = [&](double x) {  // what a step of h(x) in H is in T
    const double h = portable_exp(-exponent * portable_log(x));
    return power_ == 0.0 ? h : power_ * h;
  };
  begin_ = transformed(1.5) - density(1.0);
  range_ = transformed(size_ + 0.5) - begin_;
  const std::int64_t corrected = std::min(size, kCorrectedRanks);
  reject_below_.assign(static_cast<std::size_t>(corrected) + 1, 0.0);
  for (std::int64_t rank = 2; rank <= corrected; ++rank) {
    // The last h(rank) of the interval of H that rounds to this rank belong to it.
    const auto x = static_cast<double>(rank);
    reject_below_[static_cast<std::size_t>(rank)] =
        (transformed(x + 0.5) - density(x) - begin_) / range_;
  }
}

double ZipfSampler::invert(double v) const {
  const double t = begin_ + v * range_;
  return portable_exp(power_ == 0.0 ? t : inverse_power_ * portable_log(t));
}

void ZipfSampler::sample(std::span<const std::uint64_t> bits,
                         std::span<std::uint64_t> ranks,
                         std::vector<double>& scratch) const {
  const std::size_t count = bits.size();
  scratch.resize(std::max(scratch.size(), count));
  double* const real = scratch.data();
  if (power_ == 0.0) {
    for (std::size_t i = 0; i < count; ++i) {
      real[i] = portable_exp(begin_ + uniform(bits[i]) * range_);
    }
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      real[i] = portable_exp(inverse_power_ * portable_log(begin_ + uniform(bits[i]) * range_));
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto rounded = [&](double x) {
      return static_cast<std::uint64_t>(std::clamp(x + 0.5, 1.0, size_));
    };
    std::uint64_t rank = rounded(real[i]);
    if (rank < reject_below_.size() && uniform(bits[i]) < reject_below_[rank]) [[unlikely]] {
      std::uint64_t redrawn = bits[i];
      double v;
      do {
        redrawn = hash64(redrawn + 0x9E3779B97F4A7C15ULL);
        v = uniform(redrawn);
        rank = rounded(invert(v));
      } while (rank < reject_below_.size() && v < reject_below_[rank]);
    }
    ranks[i] = rank;
  }
}

}  // namespace satrap::data
