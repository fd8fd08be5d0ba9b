#include "satrap/core/portable_math.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "satrap/core/hash.h"

namespace satrap {
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

TEST(PortableMath, LogOfOnePlusAgreesWithLibmNearZeroToo) {
  const RandomStream random{8};
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const double size = std::exp((random.uniform_double(2 * i) - 0.7) * 100.0);  // 4e-31 to 1e13
    const double x = random.uniform_double(2 * i + 1) < 0.5 && size < 1.0 ? -size : size;
    EXPECT_NEAR(portable_log1p(x) / std::log1p(x), 1.0, 1e-13) << x;
  }
  EXPECT_EQ(portable_log1p(0.0), 0.0);
  EXPECT_TRUE(std::signbit(portable_log1p(-0.0)));
  EXPECT_NEAR(portable_log1p(3.4e38), std::log1p(3.4e38), 1e-12);
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
  EXPECT_EQ(portable_sigmoid(std::numeric_limits<double>::infinity()), 1.0);
  EXPECT_TRUE(std::isnan(portable_sigmoid(std::numeric_limits<double>::quiet_NaN())));
}

}  // namespace
}  // namespace satrap
