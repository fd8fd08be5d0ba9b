#include "src/dense/simd.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace satrap::dense {
namespace {

/// Small whole numbers, whose sums are exact in any order.
std::vector<float> whole_numbers(std::mt19937_64& random, std::size_t size) {
  std::vector<float> values(size);
  for (float& v : values) v = static_cast<float>(random() % 9) - 4.0F;
  return values;
}

TEST(Simd, LoadsFromAnyFloat) {
  std::vector<float> from(40);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
  for (std::size_t offset = 0; offset < 17; ++offset) {
    const Simd loaded = load(from.data() + offset);
    for (std::int64_t i = 0; i < kSimdFloats; ++i)
      EXPECT_EQ(loaded[i], from[offset + static_cast<std::size_t>(i)]);
  }
}

TEST(Simd, OfNothingSumAndDotAreZero) {
  const float* const none = nullptr;
  EXPECT_EQ(sum(none, 0), 0.0F);
  EXPECT_EQ(dot(none, none, 0), 0.0F);
}

TEST(Simd, SumAndDotAgreeWithPlainLoopsForEverySize) {
  std::mt19937_64 random(1);
  for (std::int64_t n = 1; n < 150; ++n) {
    const std::vector<float> a = whole_numbers(random, static_cast<std::size_t>(n) + 1);
    const std::vector<float> b = whole_numbers(random, static_cast<std::size_t>(n) + 1);
    float total = 0.0F, product = 0.0F;
    for (std::int64_t i = 0; i < n; ++i) {  // of the values from the second on: not aligned
      total += a[static_cast<std::size_t>(i) + 1];
      product += a[static_cast<std::size_t>(i) + 1] * b[static_cast<std::size_t>(i) + 1];
    }
    ASSERT_EQ(sum(a.data() + 1, n), total) << n;
    ASSERT_EQ(dot(a.data() + 1, b.data() + 1, n), product) << n;
  }
}

TEST(Simd, ElementsAreAddedInHalves) {
  // 8 apart, then 4, 2, 1: the big ones meet first and cancel, so the small one survives.
  std::vector<float> values(16, 0.0F);
  values[3] = 0x1p30F;
  values[11] = -0x1p30F;
  values[7] = 1.0F;
  EXPECT_EQ(sum(load(values.data())), 1.0F);
  values[11] = 1.0F;
  values[7] = -0x1p30F;
  EXPECT_EQ(sum(load(values.data())), 0.0F);
}

}  // namespace
}  // namespace satrap::dense
