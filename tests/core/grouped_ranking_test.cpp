#include "satrap/core/grouped_ranking.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/grouped_auc.h"
#include "satrap/core/hash.h"

namespace satrap {
namespace {

using Floats = std::vector<float>;
using Groups = std::vector<std::uint64_t>;
using Ks = std::vector<std::int64_t>;

double discount(std::size_t rank) { return 1.0 / std::log2(1.0 + static_cast<double>(rank)); }

/// The mean of NDCG and recall over every order of the rows that keeps scores descending.
RankingAt over_all_orders(const std::vector<std::pair<float, float>>& rows, std::int64_t k) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  double ndcg = 0, recall = 0, orders = 0;
  do {
    const auto ascends = [&](std::size_t a, std::size_t b) {
      return rows[a].first < rows[b].first;
    };
    if (std::ranges::adjacent_find(order, ascends) != order.end()) continue;
    double gain = 0, best = 0, found = 0, positives = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool is_within = i < static_cast<std::size_t>(k);
      if (rows[order[i]].second == 1.0F) {
        if (is_within) gain += discount(i + 1);
        found += is_within ? 1 : 0;
        positives += 1;
        if (positives <= static_cast<double>(k))
          best += discount(static_cast<std::size_t>(positives));
      }
    }
    ndcg += gain / best;
    recall += found / positives;
    orders += 1;
  } while (std::ranges::next_permutation(order).found);
  return {.k = k, .ndcg = ndcg / orders, .recall = recall / orders};
}

TEST(GroupedRanking, OfOneGroupIsWhatItsFirstRowsShow) {
  // Descending: 0, 1, 1, 0.
  const GroupedRanking result = grouped_ranking(Groups(4, 7), Floats{.1F, .9F, .8F, .5F},
                                                Floats{0, 0, 1, 1}, {}, Ks{1, 2, 3});
  ASSERT_EQ(result.at.size(), 3U);
  EXPECT_EQ(result.num_groups, 1);
  EXPECT_EQ(result.at[0].ndcg, 0.0);
  EXPECT_NEAR(result.at[1].ndcg, discount(2) / (discount(1) + discount(2)), 1e-12);
  EXPECT_NEAR(result.at[2].ndcg, (discount(2) + discount(3)) / (discount(1) + discount(2)), 1e-12);
  EXPECT_EQ(result.at[0].recall, 0.0);
  EXPECT_EQ(result.at[1].recall, 0.5);
  EXPECT_EQ(result.at[2].recall, 1.0);
  EXPECT_EQ(result.at[2].k, 3);
}

TEST(GroupedRanking, IsTheMeanOverGroupsWithAPositive) {
  // Group 1 has its positive first, group 2 second; group 3 has none, and the last row no group.
  const GroupedRanking result =
      grouped_ranking(Groups{1, 1, 2, 2, 3, kNoGroup}, Floats{.9F, .1F, .9F, .1F, .9F, .9F},
                      Floats{1, 0, 0, 1, 0, 1}, {}, Ks{1});
  EXPECT_EQ(result.num_groups, 2);
  EXPECT_DOUBLE_EQ(result.at[0].ndcg, 0.5);
  EXPECT_DOUBLE_EQ(result.at[0].recall, 0.5);
}

TEST(GroupedRanking, WeighsGroupsByTheMeanWeightOfTheirRows) {
  // Group 1 is right and weighs (1 + 3) / 2, group 2 wrong with 1. Weight 0: not there.
  const GroupedRanking result =
      grouped_ranking(Groups{1, 1, 2, 2, 2}, Floats{.9F, .1F, .9F, .1F, .95F},
                      Floats{1, 0, 0, 1, 1}, Floats{1, 3, 1, 1, 0}, Ks{1});
  EXPECT_DOUBLE_EQ(result.at[0].recall, 2.0 / 3);
  EXPECT_DOUBLE_EQ(result.at[0].ndcg, 2.0 / 3);
}

TEST(GroupedRanking, IsUndefinedWithoutAPositiveOrWithANanScore) {
  const GroupedRanking none = grouped_ranking(Groups{1}, Floats{.5F}, Floats{0}, {}, Ks{5});
  EXPECT_EQ(none.num_groups, 0);
  EXPECT_TRUE(std::isnan(none.at[0].ndcg) && std::isnan(none.at[0].recall));
  const GroupedRanking nan =
      grouped_ranking(Groups{1, 1}, Floats{std::nanf(""), .5F}, Floats{0, 1}, {}, Ks{5});
  EXPECT_TRUE(std::isnan(nan.at[0].ndcg) && std::isnan(nan.at[0].recall));
}

TEST(GroupedRanking, RefusesWrongSizesLabelsAndRanks) {
  EXPECT_THROW(grouped_ranking(Groups{1}, Floats{.5F}, Floats{}, {}, Ks{1}), Error);
  EXPECT_THROW(grouped_ranking(Groups{1}, Floats{.5F}, Floats{.5F}, {}, Ks{1}), Error);
  EXPECT_THROW(grouped_ranking(Groups{1}, Floats{.5F}, Floats{1}, Floats{-1}, Ks{1}), Error);
  EXPECT_THROW(grouped_ranking(Groups{1}, Floats{.5F}, Floats{1}, {}, Ks{0}), Error);
}

/// Numbers of scikit-learn 1.9.1: ndcg_score, of one row per group, with k = 3.
TEST(GroupedRanking, IsThatOfScikitLearn) {
  const GroupedRanking result = grouped_ranking(
      Groups{1, 1, 1, 1, 1, 2, 2, 2, 2, 2},
      Floats{.5F, .5F, .25F, .75F, .5F, .9F, .1F, .9F, .9F, .2F},
      Floats{1, 0, 1, 0, 1, 0, 1, 1, 0, 0}, Floats{2, 2, 2, 2, 2, 1, 1, 1, 1, 1}, Ks{3});
  EXPECT_NEAR(result.at[0].ndcg, 0.38105096581018927, 1e-12);
}

TEST(GroupedRanking, AgreesWithAllOrdersInAnyOrderOfTheRows) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RandomStream random{hash64(seed, 80)};
    constexpr std::size_t kRows = 30;
    Groups groups;
    Floats scores, labels, weights;
    std::map<std::uint64_t, std::vector<std::pair<float, float>>> rows_of;
    std::map<std::uint64_t, double> weight_of;
    for (std::size_t i = 0; i < kRows; ++i) {
      groups.push_back(1 + i % 6);
      scores.push_back(static_cast<float>(random.below(3 * i, 3)));  // few values: many ties
      labels.push_back(random.uniform(3 * i + 1) < 0.4F ? 1.0F : 0.0F);
      weights.push_back(seed % 2 == 0 ? 1.0F : 0.25F + random.uniform(3 * i + 2));
      rows_of[groups.back()].emplace_back(scores.back(), labels.back());
      weight_of[groups.back()] += static_cast<double>(weights.back());
    }
    for (const std::int64_t k : {1, 2, 4, 9}) {
      double ndcg = 0, recall = 0, all = 0;
      for (const auto& [group, rows] : rows_of) {
        const RankingAt one = over_all_orders(rows, k);
        if (std::isnan(one.recall)) continue;
        const double weight = weight_of[group] / static_cast<double>(rows.size());
        ndcg += weight * one.ndcg;
        recall += weight * one.recall;
        all += weight;
      }
      const RankingAt found = grouped_ranking(groups, scores, labels, weights, Ks{k}).at[0];
      EXPECT_NEAR(found.ndcg, ndcg / all, 1e-12) << "seed " << seed << " k " << k;
      EXPECT_NEAR(found.recall, recall / all, 1e-12) << "seed " << seed << " k " << k;
      for (Floats* values : {&scores, &labels, &weights}) std::ranges::reverse(*values);
      std::ranges::reverse(groups);
      const RankingAt reversed = grouped_ranking(groups, scores, labels, weights, Ks{k}).at[0];
      EXPECT_EQ(reversed.ndcg, found.ndcg);
      EXPECT_EQ(reversed.recall, found.recall);
    }
  }
}

}  // namespace
}  // namespace satrap
