#include "satrap/table/row_init.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/hash.h"

namespace satrap::table {
namespace {

std::vector<float> fill(const RowInit& init, std::uint64_t seed, Key key, std::size_t dim = 16) {
  std::vector<float> weights(dim);
  init.fill(seed, key, weights);
  return weights;
}

TEST(RowInit, DependsOnSeedTableNameAndIdOnly) {
  const RowInit init;
  const std::uint64_t seed = RowInit::table_seed(1, "user");
  const Key key = make_key(TableId{0}, 5);
  const std::vector<float> weights = fill(init, seed, key);
  EXPECT_EQ(weights, fill(init, seed, key));
  EXPECT_EQ(weights, fill(init, seed, make_key(TableId{3}, 5))) << "numbers of tables may change";
  EXPECT_NE(weights, fill(init, seed, make_key(TableId{0}, 6)));
  EXPECT_NE(weights, fill(init, RowInit::table_seed(2, "user"), key));
  EXPECT_NE(weights, fill(init, RowInit::table_seed(1, "item"), key));
}

TEST(RowInit, ALongerRowBeginsAsAShorterOne) {
  const std::vector<float> longer = fill({}, 1, make_key(TableId{0}, 5), 20);
  EXPECT_EQ(std::vector(longer.begin(), longer.begin() + 16), fill({}, 1, make_key(TableId{0}, 5)));
}

struct Moments {
  double mean = 0, variance = 0, low = 1e9, high = -1e9;
};
Moments moments(const RowInit& init) {
  Moments m;
  constexpr int kRows = 5000, kDim = 32;
  for (std::uint64_t id = 0; id < kRows; ++id) {
    for (const float w : fill(init, 9, make_key(TableId{0}, id), kDim)) {
      m.mean += static_cast<double>(w) / (kRows * kDim);
      m.variance += static_cast<double>(w) * static_cast<double>(w) / (kRows * kDim);
      m.low = std::min(m.low, static_cast<double>(w));
      m.high = std::max(m.high, static_cast<double>(w));
    }
  }
  return m;
}

TEST(RowInit, UniformFillsItsRange) {
  const Moments m = moments({.type = InitType::kUniform, .scale = 0.5F});
  EXPECT_GE(m.low, -0.5);
  EXPECT_LT(m.high, 0.5);
  EXPECT_LT(m.low, -0.499);
  EXPECT_GT(m.high, 0.499);
  EXPECT_NEAR(m.mean, 0.0, 0.003);
  EXPECT_NEAR(m.variance, 0.25 / 3, 0.001);
}

TEST(RowInit, NormalHasItsStandardDeviation) {
  const Moments m = moments({.type = InitType::kNormal, .scale = 0.1F});
  EXPECT_NEAR(m.mean, 0.0, 0.001);
  EXPECT_NEAR(m.variance, 0.01, 0.0002);
  EXPECT_GT(m.high, 0.35);
}

TEST(RowInit, ConstantIsTheScale) {
  EXPECT_EQ(fill({.type = InitType::kConstant, .scale = -2.0F}, 1, make_key(TableId{0}, 1), 3),
            std::vector<float>(3, -2.0F));
}

TEST(NormalQuantile, InvertsTheDistributionFunction) {
  for (std::uint32_t n = 0; n < (1U << 24); n += n < 1000 || n > (1U << 24) - 1000 ? 1 : 997) {
    const double x = static_cast<double>(normal_quantile(n));
    const double u = (n + 0.5) * 0x1.0p-24;
    // Error in x: the error in u divided by the density at x.
    const double error =
        (0.5 * std::erfc(-x / std::sqrt(2.0)) - u) / (std::exp(-x * x / 2) / std::sqrt(2 * M_PI));
    ASSERT_LT(std::abs(error), std::max(5e-7, 2e-6 * std::abs(x))) << "n " << n << ", x " << x;
  }
}

TEST(NormalQuantile, HasTheSameBitsEverywhere) {
  EXPECT_EQ(normal_quantile(0), -normal_quantile((1U << 24) - 1));
  EXPECT_GT(normal_quantile(1U << 23), 0.0F);
  EXPECT_EQ(normal_quantile(1U << 23), -normal_quantile((1U << 23) - 1));
}

}  // namespace
}  // namespace satrap::table
