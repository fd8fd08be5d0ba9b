#include "src/data/portable_math.h"

#include <cmath>

#include <gtest/gtest.h>

#include "satrap/core/hash.h"

namespace satrap::data {
namespace {

TEST(PortableMath, AgreesWithLibmToTwelveDigits) {
  const RandomStream random{7};
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const double x = (random.uniform_double(i) - 0.5) * 1200.0;
    EXPECT_NEAR(portable_exp(x) / std::exp(x), 1.0, 1e-12) << "exp " << x;
    const double y = std::exp(x);
    EXPECT_NEAR(portable_log(y), std::log(y), 1e-13 * (1.0 + std::abs(x))) << "log " << y;
  }
}

TEST(PortableMath, IsExactAtZeroAndOne) {
  EXPECT_EQ(portable_exp(0.0), 1.0);
  EXPECT_EQ(portable_log(1.0), 0.0);
  EXPECT_EQ(portable_sigmoid(0.0), 0.5);
}

TEST(PortableMath, SigmoidOfTheFarEndsStaysInTheUnitInterval) {
  EXPECT_GE(portable_sigmoid(-1e6), 0.0);
  EXPECT_LT(portable_sigmoid(-1e6), 1e-300);
  EXPECT_EQ(portable_sigmoid(1e6), 1.0);
}

}  // namespace
}  // namespace satrap::data
