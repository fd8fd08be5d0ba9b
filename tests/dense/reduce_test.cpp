#include "src/dense/reduce.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace satrap::dense {
namespace {

double sum_of(const std::vector<float>& values) {
  return sum_of_squares(values.data(), std::ssize(values));
}

TEST(SumOfSquares, OfNothingIsZero) {
  ThreadPool pool(2);
  EXPECT_EQ(sum_of_squares(nullptr, 0), 0.0);
  EXPECT_EQ(sum_of_squares(std::span<const float>(), pool), 0.0);
}

TEST(SumOfSquares, IsExactForSmallWholeNumbersOfEverySize) {
  for (std::int64_t size = 1; size < 70; ++size) {
    std::vector<float> values;
    double exact = 0.0;
    for (std::int64_t i = 1; i <= size; ++i) {
      values.push_back(static_cast<float>(i % 2 == 0 ? i : -i));
      exact += static_cast<double>(i * i);
    }
    EXPECT_EQ(sum_of(values), exact);
  }
}

TEST(SumOfSquares, IsInDouble) {
  EXPECT_EQ(sum_of({1e30F}), std::pow(static_cast<double>(1e30F), 2));
  EXPECT_EQ(sum_of({0x1p-100F}), 0x1p-200);
  EXPECT_EQ(sum_of({0x1p24F, 1.0F}), 0x1p48 + 1.0);
}

TEST(SumOfSquares, IsNotFiniteExactlyIfSomeValueIsNot) {
  constexpr float kMost = std::numeric_limits<float>::max();
  EXPECT_TRUE(std::isfinite(sum_of(std::vector<float>(100, kMost))));
  for (const float odd :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    for (const std::size_t place : {0U, 15U, 16U, 99U}) {
      std::vector<float> values(100, 1.0F);
      values[place] = odd;
      EXPECT_FALSE(std::isfinite(sum_of(values))) << odd << " at " << place;
    }
  }
}

TEST(SumOfSquares, IsTheSameForAnyNumberOfThreads) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  for (const std::int64_t size :
       {std::int64_t{1}, kReduceChunk - 1, kReduceChunk, kReduceChunk + 1, 5 * kReduceChunk + 77}) {
    std::vector<float> values(static_cast<std::size_t>(size));
    for (float& v : values) v = normal(random);
    double chunks = 0.0;
    for (std::int64_t begin = 0; begin < size; begin += kReduceChunk) {
      chunks += sum_of_squares(values.data() + begin, std::min(kReduceChunk, size - begin));
    }
    for (const std::int64_t num_threads : {1, 2, 4}) {
      ThreadPool pool(num_threads);
      EXPECT_EQ(sum_of_squares(values, pool), chunks) << size << " by " << num_threads;
    }
  }
}

TEST(ClippingFactor, ShortensWhatIsLongerThanTheLimit) {
  ThreadPool pool(1);
  const std::vector<float> gradient = {3.0F, 4.0F};  // of length 5
  EXPECT_EQ(clipping_factor(gradient, 0.0, pool), 1.0F);
  EXPECT_EQ(clipping_factor(gradient, 6.0, pool), 1.0F);
  EXPECT_NEAR(clipping_factor(gradient, 1.0, pool), 0.2F, 1e-6F);
}

}  // namespace
}  // namespace satrap::dense
