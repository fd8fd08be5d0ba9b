#include "src/data/rows/distinct_estimate.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "satrap/core/hash.h"

namespace satrap::data {
namespace {

/// x + sum over k >= 1 of x^(2^k) 2^(k-1): the share of empty registers.
double sigma(double x) {
  if (x == 1.0) return std::numeric_limits<double>::infinity();
  double weight = 1.0, sum = x, previous;
  do {
    previous = sum;
    x *= x;
    sum += x * weight;
    weight += weight;
  } while (sum != previous);
  return sum;
}

/// The same for full registers.
double tau(double x) {
  if (x == 0.0 || x == 1.0) return 0.0;
  double weight = 1.0, sum = 1.0 - x, previous;
  do {
    previous = sum;
    x = std::sqrt(x);
    weight *= 0.5;
    sum -= (1.0 - x) * (1.0 - x) * weight;
  } while (sum != previous);
  return sum / 3.0;
}

}  // namespace

void DistinctEstimate::add(std::uint64_t id) {
  const std::uint64_t hash = hash64(id + 0x9E3779B97F4A7C15ULL);
  // The position of the first set bit after the index, from 1; 64 - kIndexBits + 1 if there is
  // none.
  const std::uint64_t rest = (hash << kIndexBits) | (std::uint64_t{1} << (kIndexBits - 1));
  const auto first_one = static_cast<std::uint8_t>(std::countl_zero(rest) + 1);
  std::uint8_t& reg = registers_[hash >> (64 - kIndexBits)];
  reg = std::max(reg, first_one);
}

void DistinctEstimate::clear() { std::ranges::fill(registers_, std::uint8_t{0}); }

void DistinctEstimate::merge(const DistinctEstimate& other) {
  for (std::size_t i = 0; i < kRegisters; ++i) {
    registers_[i] = std::max(registers_[i], other.registers_[i]);
  }
}

double DistinctEstimate::count() const {
  constexpr std::size_t kMostValue = 64 - kIndexBits + 1;
  constexpr auto kM = static_cast<double>(kRegisters);
  std::array<double, kMostValue + 1> with_value{};
  for (const std::uint8_t value : registers_) with_value[value] += 1.0;
  double z = kM * tau(1.0 - with_value[kMostValue] / kM);
  for (std::size_t k = kMostValue - 1; k >= 1; --k) z = 0.5 * (z + with_value[k]);
  z += kM * sigma(with_value[0] / kM);
  return kM * kM / (2.0 * std::log(2.0) * z);
}

}  // namespace satrap::data
