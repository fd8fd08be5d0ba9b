#include "satrap/core/half.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace satrap {
namespace {

template <class Half>
class HalfTest : public testing::Test {
 protected:
  static float nearest(float value) {
    Half half;
    round_to_nearest(value, half);
    return to_float(half);
  }
  static float stochastic(float value, std::uint32_t random) {
    Half half;
    round_stochastically(value, random, half);
    return to_float(half);
  }
};
using Types = testing::Types<Bf16, Fp16>;
TYPED_TEST_SUITE(HalfTest, Types);

TYPED_TEST(HalfTest, EveryValueThatCanBeStoredStaysAsItIs) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = to_float(TypeParam{static_cast<std::uint16_t>(bits)});
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(this->nearest(value)));
      EXPECT_TRUE(std::isnan(this->stochastic(value, 0xFFFFU)));
      continue;
    }
    for (const std::uint32_t random : {0U, 0x8000U, 0xFFFFU}) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(this->stochastic(value, random)),
                std::bit_cast<std::uint32_t>(value));
    }
    ASSERT_EQ(std::bit_cast<std::uint32_t>(this->nearest(value)),
              std::bit_cast<std::uint32_t>(value));
  }
}

/// A value rounds to one of its two neighbours among all values, and rounds up in proportion to its
/// distance from the lower one.
TYPED_TEST(HalfTest, RoundsToOneOfTheNeighboursTheNearerTheLikelier) {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    // Includes values below the least normal fp16, 2^-14, and below the least of all, 2^-24.
    const int exponent = static_cast<int>(random() % 45) - 30;
    const float value = std::ldexp(1.0F + static_cast<float>(random() % 8191) / 8191.0F, exponent);
    const float down = this->stochastic(value, 0), up = this->stochastic(value, 0xFFFFU);
    ASSERT_LE(down, value);
    const float nearest = this->nearest(value);
    ASSERT_TRUE(nearest == down || nearest == up || nearest < std::ldexp(1.0F, -24)) << value;
    constexpr std::uint32_t kDraws = 1024;
    std::uint32_t ups = 0;
    float last = down;
    for (std::uint32_t n = 0; n < kDraws; ++n) {
      const float rounded = this->stochastic(value, n << 6);
      ASSERT_TRUE(rounded == down || rounded == up);
      ASSERT_GE(rounded, last);
      ASSERT_EQ(this->stochastic(-value, n << 6), -rounded);
      ups += rounded != down;
      last = rounded;
    }
    if (up == down) continue;
    ASSERT_GE(up, value);
    const double expected = (static_cast<double>(value) - down) / (static_cast<double>(up) - down);
    ASSERT_NEAR(ups / double{kDraws}, expected, 1.5 / kDraws) << value;
  }
}

TYPED_TEST(HalfTest, WhatIsFiniteStaysFinite) {
  const float largest = to_float(
      TypeParam{static_cast<std::uint16_t>(std::is_same_v<TypeParam, Bf16> ? 0x7F7F : 0x7BFF)});
  const float max = std::numeric_limits<float>::max();
  EXPECT_EQ(this->stochastic(max, 0xFFFFU), largest);
  EXPECT_EQ(this->stochastic(-max, 0xFFFFU), -largest);
  EXPECT_EQ(this->stochastic(std::numeric_limits<float>::infinity(), 0),
            std::numeric_limits<float>::infinity());
  EXPECT_EQ(this->stochastic(std::numeric_limits<float>::denorm_min(), 0), 0.0F);
}

}  // namespace
}  // namespace satrap
