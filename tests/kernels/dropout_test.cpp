#include "satrap/kernels/dropout.h"

#include <cmath>

#include <gtest/gtest.h>

namespace satrap {
namespace {

TEST(Dropout, KeepsTheMeanAndDropsItsShare) {
  for (const double rate : {0.1, 0.5, 0.9}) {
    const Dropout dropout(rate, 7);
    const int kExamples = 200, kColumns = 500;
    double sum = 0.0;
    int zeros = 0;
    for (int e = 0; e < kExamples; ++e) {
      const RandomStream draws = dropout.draws_of(e);
      for (int c = 0; c < kColumns; ++c) {
        const float factor = dropout.factor(draws, c);
        ASSERT_TRUE(factor == 0.0F || factor == static_cast<float>(1.0 / (1.0 - rate)));
        sum += static_cast<double>(factor);
        zeros += factor == 0.0F ? 1 : 0;
      }
    }
    // Five standard deviations of a mean of 100,000 draws.
    const double deviation = 5 * std::sqrt(rate * (1 - rate) / (kExamples * kColumns));
    EXPECT_NEAR(zeros / static_cast<double>(kExamples * kColumns), rate, deviation);
    EXPECT_NEAR(sum / (kExamples * kColumns), 1.0, deviation / (1 - rate));
  }
}

TEST(Dropout, DependsOnSeedExampleAndColumnAlone) {
  const Dropout dropout(0.5, 3), same(0.5, 3), other(0.5, 4);
  int differences = 0, of_examples = 0;
  for (int c = 0; c < 100; ++c) {
    EXPECT_EQ(dropout.factor(dropout.draws_of(9), c), same.factor(same.draws_of(9), c));
    differences += dropout.factor(dropout.draws_of(9), c) != other.factor(other.draws_of(9), c);
    of_examples += dropout.factor(dropout.draws_of(9), c) != dropout.factor(dropout.draws_of(8), c);
  }
  EXPECT_GT(differences, 25);
  EXPECT_GT(of_examples, 25);
}

TEST(Dropout, OfRateZeroKeepsAll) {
  const Dropout dropout(0.0, 1);
  for (int c = 0; c < 100; ++c) EXPECT_EQ(dropout.factor(dropout.draws_of(0), c), 1.0F);
}

}  // namespace
}  // namespace satrap
