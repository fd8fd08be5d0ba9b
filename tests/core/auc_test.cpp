#include "satrap/core/auc.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"

namespace satrap {
namespace {

using Floats = std::vector<float>;

/// The definition: every positive against every negative.
double auc_by_pairs(const Floats& scores, const Floats& labels) {
  double won = 0, pairs = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    for (std::size_t j = 0; j < scores.size(); ++j) {
      const double weight = static_cast<double>(labels[i]) * (1.0 - static_cast<double>(labels[j]));
      pairs += weight;
      if (scores[i] > scores[j]) won += weight;
      if (scores[i] == scores[j]) won += 0.5 * weight;
    }
  }
  return won / pairs;
}

TEST(Auc, IsTheShareOfPairsInTheRightOrder) {
  // Positives .8 and .4, negatives .6 and .2: three of the four pairs are right.
  EXPECT_DOUBLE_EQ(auc(Floats{.8F, .6F, .4F, .2F}, Floats{1, 0, 1, 0}), 0.75);
  EXPECT_DOUBLE_EQ(auc(Floats{.1F, .9F}, Floats{0, 1}), 1.0);
  EXPECT_DOUBLE_EQ(auc(Floats{.1F, .9F}, Floats{1, 0}), 0.0);
}

TEST(Auc, CountsTiesHalf) {
  EXPECT_DOUBLE_EQ(auc(Floats{.5F, .5F, .5F}, Floats{1, 0, 1}), 0.5);
  EXPECT_DOUBLE_EQ(auc(Floats{.5F, .5F, .1F}, Floats{1, 0, 0}), 0.75);
}

TEST(Auc, OrdersNegativeScoresZerosAndInfinities) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_DOUBLE_EQ(auc(Floats{-2, -1, 0, 1, inf, -inf}, Floats{0, 1, 1, 1, 1, 0}), 1.0);
  EXPECT_DOUBLE_EQ(auc(Floats{-0.0F, 0.0F}, Floats{0, 1}), 0.5);
}

TEST(Auc, IsUndefinedWithoutBothClassesOrWithANanScore) {
  EXPECT_TRUE(std::isnan(auc(Floats{}, Floats{})));
  EXPECT_TRUE(std::isnan(auc(Floats{.5F, .6F}, Floats{1, 1})));
  EXPECT_TRUE(std::isnan(auc(Floats{.5F, .6F}, Floats{0, 0})));
  EXPECT_TRUE(std::isnan(auc(Floats{std::nanf(""), .6F}, Floats{0, 1})));
}

TEST(Auc, RefusesWrongSizesAndLabels) {
  EXPECT_THROW(auc(Floats{.5F}, Floats{}), Error);
  EXPECT_THROW(auc(Floats{.5F}, Floats{2}), Error);
  EXPECT_THROW(auc(Floats{.5F}, Floats{std::nanf("")}), Error);
}

TEST(Auc, SplitsFractionalLabelsBetweenTheClasses) {
  // Example 0 is 1/4 positive and 3/4 negative, example 1 the reverse. Of the pairs, example 1 wins
  // 9/16, example 0 wins 1/16, and 6/16 pair an example with itself.
  EXPECT_DOUBLE_EQ(auc(Floats{.1F, .2F}, Floats{.25F, .75F}), (9 + 0.5 * 6) / 16);
}

TEST(Auc, AgreesWithAllPairsOnRandomScoresWithTies) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RandomStream random{hash64(seed, 77)};
    const auto num_rows = static_cast<std::size_t>(2 + random.below(0, 400));
    const bool coarse = seed % 2 == 0;  // few different scores: many ties
    Floats scores, labels;
    for (std::size_t i = 0; i < num_rows; ++i) {
      const float u = random.uniform(3 * i + 1) * 4.0F - 2.0F;
      scores.push_back(coarse ? std::round(u * 5.0F) : u);
      labels.push_back(random.uniform(3 * i + 2) < 0.3F ? 1.0F : 0.0F);
      if (seed % 3 == 0) labels.back() = random.uniform(3 * i + 3);
    }
    labels[0] = 1.0F;
    labels[1] = 0.0F;
    EXPECT_NEAR(auc(scores, labels), auc_by_pairs(scores, labels), 1e-12) << "seed " << seed;
  }
}

}  // namespace
}  // namespace satrap
