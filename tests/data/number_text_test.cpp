#include "src/data/rows/number_text.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "satrap/core/hash.h"

namespace satrap::data {
namespace {

TEST(NumberText, OfADoubleIsPythons) {
  NumberText buffer;
  EXPECT_EQ(text_of_real(17.0, buffer), "17");
  EXPECT_EQ(text_of_real(-0.0, buffer), "0");
  EXPECT_EQ(text_of_real(0.1, buffer), "0.1");
  EXPECT_EQ(text_of_real(0.1F, buffer), "0.1");
  EXPECT_EQ(text_of_real(1e-4, buffer), "0.0001");
  EXPECT_EQ(text_of_real(1e-5, buffer), "1e-05");
  EXPECT_EQ(text_of_real(123456.75, buffer), "123456.75");
  EXPECT_EQ(text_of_real(9007199254740993.0, buffer), "9007199254740992");
  EXPECT_EQ(text_of_real(1e16, buffer), "1e+16");
  EXPECT_EQ(text_of_real(1.5e300, buffer), "1.5e+300");
  EXPECT_EQ(text_of_real(std::numeric_limits<double>::infinity(), buffer), "inf");
}

/// What std::to_chars and std::from_chars make of it, for numbers as files have them and any
/// others.
TEST(NumberText, ADecimalOfAFloatIsThatOfItsText) {
  const RandomStream random{6};
  std::vector<float> values = {0.0F, -0.0F, 0.1F, 1e-5F, 2.5F, 13.37F, 16777216.0F, 99.99F, 1e-30F};
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    values.push_back(static_cast<float>(random.bits(i) % 1'000'000) / 1000.0F);
    values.push_back(static_cast<float>(random.uniform_double(2 * i + 100'000)) - 0.5F);
  }
  for (const float value : values) {
    const std::string text = fmt::format("{}", value);
    EXPECT_EQ(decimal_of(value), std::stod(text)) << text;
    EXPECT_EQ(static_cast<float>(decimal_of(value)), value);
  }
}

}  // namespace
}  // namespace satrap::data
