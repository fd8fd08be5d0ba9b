#include "satrap/core/float_codec.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace satrap {
namespace {

std::vector<float> there_and_back(FloatType encoding, const std::vector<float>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_of(encoding) * count));
  encode_floats(encoding, values, bytes);
  std::vector<float> back(values.size());
  decode_floats(encoding, bytes, back);
  return back;
}

TEST(FloatCodec, ValuesThatFitComeBackAsTheyWere) {
  const std::vector<float> values{
      0.0F, -0.0F, 1.0F, -1.5F, 0.0078125F, 240.0F, std::numeric_limits<float>::infinity()};
  for (const auto encoding : {FloatType::kFp32, FloatType::kBf16, FloatType::kFp16}) {
    const auto back = there_and_back(encoding, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(back[i]), std::bit_cast<std::uint32_t>(values[i]));
    }
    EXPECT_TRUE(there_and_back(encoding, {}).empty());
    EXPECT_TRUE(std::isnan(there_and_back(encoding, {std::nanf("")})[0]));
  }
}

TEST(FloatCodec, RoundingIsToNearestEven) {
  // Halfway between 1 and the next bf16 (1 + 2^-7) rounds to 1, whose last bit is 0; the next
  // halfway rounds up.
  const std::vector<float> halfway{1.0F + 0x1p-8F, 1.0F + 3 * 0x1p-8F, 1.0F + 0x1.02p-8F};
  EXPECT_EQ(there_and_back(FloatType::kBf16, halfway),
            (std::vector<float>{1.0F, 1.0F + 0x1p-6F, 1.0F + 0x1p-7F}));
  EXPECT_EQ(there_and_back(FloatType::kFp16, {1.0F + 0x1p-11F, 1.0F + 3 * 0x1p-11F, 65520.0F}),
            (std::vector<float>{1.0F, 1.0F + 0x1p-9F, std::numeric_limits<float>::infinity()}));
}

TEST(FloatCodec, ErrorIsWithinHalfAUnitOfTheLastPlace) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0F, 10.0F);
  std::vector<float> values(1000);
  for (float& value : values) value = normal(random);
  const auto bf16 = there_and_back(FloatType::kBf16, values);
  const auto fp16 = there_and_back(FloatType::kFp16, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_LE(std::abs(bf16[i] - values[i]), std::abs(values[i]) * 0x1p-8F);
    EXPECT_LE(std::abs(fp16[i] - values[i]), std::abs(values[i]) * 0x1p-11F + 0x1p-25F);
  }
}

TEST(FloatCodec, SizesThatDoNotFitAreABug) {
  std::vector<float> values(3);
  std::vector<std::byte> bytes(7);
  EXPECT_THROW(encode_floats(FloatType::kBf16, values, bytes), Error);
  EXPECT_THROW(decode_floats(FloatType::kFp32, bytes, values), Error);
}

}  // namespace
}  // namespace satrap
