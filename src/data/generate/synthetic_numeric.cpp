#include "src/data/generate/synthetic_numeric.h"

#include <algorithm>
#include <cmath>

#include "satrap/core/hash.h"
#include "satrap/core/portable_math.h"

namespace satrap::data {
namespace {

// Approximate shares of missing values of I1 .. I13 in Criteo Kaggle.
constexpr std::array kCriteoMissing = {0.45, 0.0,  0.21, 0.22, 0.03, 0.22, 0.04,
                                       0.0,  0.04, 0.45, 0.04, 0.77, 0.22};
constexpr float kLargest = 0x1.0p24F - 1.0F;  // a float holds every integer up to here
constexpr float kCriteoI2Offset = -3.0F;      // the second column starts below zero, as Criteo's

/// The standard normal value at the middle of each of kQuantiles equally likely ranges, by summing
/// the density.
std::vector<double> normal_quantiles() {
  constexpr double kStep = 0x1.0p-10, kEnd = 6.0;
  constexpr double kDensityAtZero = 0.3989422804014327;  // 1 / sqrt(2 pi)
  std::vector<double> quantiles;
  double below = 0.0;
  for (double z = -kEnd; z < kEnd; z += kStep) {
    below += kStep * kDensityAtZero * portable_exp(-0.5 * (z + kStep / 2) * (z + kStep / 2));
    while (quantiles.size() < SyntheticNumeric::kQuantiles &&
           below >= (static_cast<double>(quantiles.size()) + 0.5) /
                        static_cast<double>(SyntheticNumeric::kQuantiles)) {
      quantiles.push_back(z + kStep);
    }
  }
  return quantiles;
}

double signed_log1p_in_double(float value) {
  const double size = portable_log(1.0 + std::abs(static_cast<double>(value)));
  return value < 0.0F ? -size : size;
}

/// Makes the column's term of the logit: rising or falling in the logarithm, with a bend.
void make_terms(SyntheticNumeric& column, const RandomStream& random) {
  constexpr auto kCount = static_cast<double>(SyntheticNumeric::kQuantiles);
  double sum = 0.0, sum_squares = 0.0;
  for (const float value : column.values) {
    const double x = signed_log1p_in_double(value);
    sum += x;
    sum_squares += x * x;
  }
  const double mean = sum / kCount;
  const double deviation = std::sqrt(std::max(sum_squares / kCount - mean * mean, 1e-6));
  const double slope = (random.bits(2) & 1) != 0 ? 1.0 : -1.0;
  const double bend = random.uniform_double(3) - 0.5;
  for (const float value : column.values) {
    const double t = std::clamp((signed_log1p_in_double(value) - mean) / deviation, -3.0, 3.0);
    column.terms.push_back(slope * t + bend * (t * t - 1.0));
  }
  column.missing_term = 2.0 * random.uniform_double(4) - 1.0;
}

}  // namespace

std::vector<SyntheticNumeric> make_synthetic_numeric(const SyntheticConfig& config,
                                                     std::uint64_t seed) {
  const std::vector<double> quantiles = normal_quantiles();
  std::vector<SyntheticNumeric> columns(static_cast<std::size_t>(config.num_numeric));
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const RandomStream random{hash64(seed, c)};
    const double location = 5.0 * random.uniform_double(0);
    const double spread = 0.8 + random.uniform_double(1);
    for (const double z : quantiles) {
      const double count = std::floor(portable_exp(location + spread * z));
      const float value = std::min(static_cast<float>(count), kLargest);
      columns[c].values.push_back(value + (c == 1 ? kCriteoI2Offset : 0.0F));
    }
    make_terms(columns[c], random);
    const double missing =
        config.numeric_missing.empty()
            ? kCriteoMissing[c % kCriteoMissing.size()]
            : SyntheticConfig::per_column(config.numeric_missing, static_cast<std::int64_t>(c));
    columns[c].missing_below = static_cast<std::uint64_t>(missing * 0x1.0p32);
  }
  return columns;
}

}  // namespace satrap::data
