#include "satrap/core/auc.h"

#include <algorithm>
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
double auc_by_pairs(const Floats& scores, const Floats& labels, const Floats& weights = {}) {
  const auto weight_of = [&](std::size_t i) {
    return weights.empty() ? 1.0 : static_cast<double>(weights[i]);
  };
  double won = 0, pairs = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    for (std::size_t j = 0; j < scores.size(); ++j) {
      const double weight = weight_of(i) * static_cast<double>(labels[i]) * weight_of(j) *
                            (1.0 - static_cast<double>(labels[j]));
      pairs += weight;
      if (scores[i] > scores[j]) won += weight;
      if (scores[i] == scores[j]) won += 0.5 * weight;
    }
  }
  return won / pairs;
}

/// The definition: at each different score, precision times what recall gains there.
double precision_by_thresholds(const Floats& scores, const Floats& labels, const Floats& weights) {
  double sum = 0, positives = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double weight = static_cast<double>(weights[i]) * static_cast<double>(labels[i]);
    double at_or_above = 0, positives_there = 0;
    for (std::size_t j = 0; j < scores.size(); ++j) {
      if (!(scores[j] >= scores[i])) continue;
      at_or_above += static_cast<double>(weights[j]);
      positives_there += static_cast<double>(weights[j]) * static_cast<double>(labels[j]);
    }
    positives += weight;
    if (weight > 0) sum += weight * positives_there / at_or_above;
  }
  return sum / positives;
}

struct WeightedRows {
  Floats scores, labels, weights;
  /// With ties, fractional labels and weights of 0, as `seed` says.
  explicit WeightedRows(std::uint64_t seed) {
    const RandomStream random{hash64(seed, 79)};
    const auto num_rows = static_cast<std::size_t>(3 + random.below(0, 300));
    for (std::size_t i = 0; i < num_rows; ++i) {
      const float u = random.uniform(4 * i + 1) * 4.0F - 2.0F;
      scores.push_back(seed % 2 == 0 ? std::round(u * 5.0F) : u);
      labels.push_back(random.uniform(4 * i + 2) < 0.3F ? 1.0F : 0.0F);
      if (seed % 3 == 0) labels.back() = random.uniform(4 * i + 3);
      weights.push_back(std::max(0.0F, random.uniform(4 * i + 4) * 3.0F - 0.5F));
    }
    labels[0] = weights[0] = weights[1] = 1.0F;
    labels[1] = 0.0F;
  }
  void reverse() {
    for (Floats* values : {&scores, &labels, &weights}) std::ranges::reverse(*values);
  }
};

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

TEST(Auc, WeighsPairsByTheProductOfTheirWeights) {
  // Positive .8 with 2 against negatives .9 with 1 and .4 with 3: 6 of 8.
  EXPECT_DOUBLE_EQ(auc(Floats{.8F, .9F, .4F}, Floats{1, 0, 0}, Floats{2, 1, 3}), 6.0 / 8);
}

TEST(Auc, ARowOfWeightZeroIsNotThere) {
  const Floats scores = {.8F, .9F, .4F, std::nanf(""), .1F};
  const Floats labels = {1, 0, 0, 1, std::nanf("")};
  EXPECT_DOUBLE_EQ(auc(scores, labels, Floats{1, 1, 1, 0, 0}), 0.5);
  EXPECT_TRUE(std::isnan(auc(Floats{.8F, .9F}, Floats{1, 0}, Floats{1, 0})));
}

TEST(Auc, RefusesWrongWeights) {
  EXPECT_THROW(auc(Floats{.5F}, Floats{1}, Floats{1, 1}), Error);
  EXPECT_THROW(auc(Floats{.5F}, Floats{1}, Floats{-1}), Error);
}

TEST(Auc, WithWeightsAgreesWithAllPairsInAnyOrder) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    WeightedRows rows(seed);
    const double found = auc(rows.scores, rows.labels, rows.weights);
    EXPECT_NEAR(found, auc_by_pairs(rows.scores, rows.labels, rows.weights), 1e-12) << seed;
    rows.reverse();
    EXPECT_EQ(auc(rows.scores, rows.labels, rows.weights), found) << seed;
  }
}

TEST(AveragePrecision, IsTheMeanPrecisionAtThePositives) {
  // At .9: 1 of 1. At .4: 2 of 3.
  EXPECT_DOUBLE_EQ(average_precision(SortedScores(Floats{.9F, .5F, .4F, .1F}, Floats{1, 0, 1, 0})),
                   (1.0 + 2.0 / 3) / 2);
  // Both positives share the threshold .5, where 2 of 3 are positive.
  EXPECT_DOUBLE_EQ(average_precision(SortedScores(Floats{.5F, .5F, .5F, .1F}, Floats{1, 0, 1, 0})),
                   2.0 / 3);
}

TEST(AveragePrecision, IsUndefinedWithoutAPositive) {
  EXPECT_TRUE(std::isnan(average_precision(SortedScores({}, {}))));
  EXPECT_TRUE(std::isnan(average_precision(SortedScores(Floats{.5F}, Floats{0}))));
  EXPECT_DOUBLE_EQ(average_precision(SortedScores(Floats{.5F}, Floats{1})), 1.0);
}

TEST(AveragePrecision, AgreesWithItsDefinitionInAnyOrder) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    WeightedRows rows(seed);
    const auto found = [&] {
      return average_precision(SortedScores(rows.scores, rows.labels, rows.weights));
    };
    const double first = found();
    EXPECT_NEAR(first, precision_by_thresholds(rows.scores, rows.labels, rows.weights), 1e-12)
        << seed;
    const Floats ones(rows.scores.size(), 1.0F);
    EXPECT_NEAR(average_precision(SortedScores(rows.scores, rows.labels)),
                precision_by_thresholds(rows.scores, rows.labels, ones), 1e-12)
        << seed;
    rows.reverse();
    EXPECT_EQ(found(), first) << seed;
  }
}

/// Numbers of scikit-learn 1.9.1: roc_auc_score, average_precision_score with sample_weight.
TEST(AveragePrecision, AndAucAreThoseOfScikitLearn) {
  const Floats scores = {.5F, .25F, .75F, .5F, .5F, .125F, .75F, .875F};
  const Floats labels = {1, 0, 1, 0, 1, 0, 0, 1};
  const Floats weights = {.5F, 2, 1, 3, .25F, 1.5F, 0, 4};
  EXPECT_NEAR(auc(scores, labels), 0.78125, 1e-12);
  EXPECT_NEAR(auc(scores, labels, weights), 0.9698996655518394, 1e-12);
  EXPECT_NEAR(average_precision(SortedScores(scores, labels)), 0.75, 1e-12);
  EXPECT_NEAR(average_precision(SortedScores(scores, labels, weights)), 0.9552795031055901, 1e-12);
}

}  // namespace
}  // namespace satrap
