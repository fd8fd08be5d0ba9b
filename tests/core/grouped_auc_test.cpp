#include "satrap/core/grouped_auc.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/auc.h"
#include "satrap/core/error.h"
#include "satrap/core/hash.h"

namespace satrap {
namespace {

using Floats = std::vector<float>;
using Groups = std::vector<std::uint64_t>;

/// The definition, group by group.
GroupedAuc group_by_group(const Groups& groups,
                          const Floats& scores,
                          const Floats& labels,
                          const Floats& weights) {
  struct OneGroup {
    Floats scores, labels, weights;
  };
  std::map<std::uint64_t, OneGroup> rows_of;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i] == kNoGroup) continue;
    rows_of[groups[i]].scores.push_back(scores[i]);
    rows_of[groups[i]].labels.push_back(labels[i]);
    rows_of[groups[i]].weights.push_back(weights[i]);
  }
  GroupedAuc result;
  double sum = 0.0, all = 0.0;
  for (const auto& [group, rows] : rows_of) {
    const double of_group = auc(rows.scores, rows.labels, rows.weights);
    if (std::isnan(of_group)) continue;
    double weight = 0.0;
    for (const float one : rows.weights) weight += static_cast<double>(one);
    sum += of_group * weight;
    all += weight;
    ++result.num_groups;
  }
  result.auc = sum / all;
  return result;
}

TEST(GroupedAuc, WeighsTheGroupsByTheirRows) {
  // Group 7: both examples in the right order. Group 9: one of its two pairs.
  const GroupedAuc result =
      grouped_auc(Groups{7, 9, 7, 9, 9}, Floats{.1F, .5F, .2F, .6F, .7F}, Floats{0, 0, 1, 1, 0});
  EXPECT_DOUBLE_EQ(result.auc, (2 * 1.0 + 3 * 0.5) / 5);
  EXPECT_EQ(result.num_groups, 2);
}

TEST(GroupedAuc, OrderAcrossGroupsDoesNotCount) {
  // Within the groups the order is right; across them a negative is above a positive.
  const Groups groups = {1, 1, 2, 2};
  const Floats scores = {.1F, .2F, .8F, .9F}, labels = {0, 1, 0, 1};
  EXPECT_DOUBLE_EQ(grouped_auc(groups, scores, labels).auc, 1.0);
  EXPECT_LT(auc(scores, labels), 1.0);
}

TEST(GroupedAuc, OfOneGroupIsTheAuc) {
  const Floats scores = {.3F, .3F, .9F, .1F, .4F}, labels = {0, 1, 0, 1, 1};
  EXPECT_DOUBLE_EQ(grouped_auc(Groups(5, 42), scores, labels).auc, auc(scores, labels));
}

TEST(GroupedAuc, LeavesOutGroupsOfOneClassAndRowsOfNone) {
  const GroupedAuc result =
      grouped_auc(Groups{1, 1, 2, 2, 3, 3, kNoGroup, kNoGroup},
                  Floats{.2F, .1F, .1F, .2F, .1F, .2F, .9F, .8F}, Floats{1, 1, 0, 0, 0, 1, 0, 1});
  EXPECT_DOUBLE_EQ(result.auc, 1.0);
  EXPECT_EQ(result.num_groups, 1);
}

TEST(GroupedAuc, WeighsGroupsByTheirWeightAndLeavesOutRowsOfNone) {
  // Group 7 weighs 1 + 3 and is right. Group 9 is wrong for 2 of 2 + 1; its row of weight 0 is not
  // there, nor is group 5, whose positive it is.
  const GroupedAuc result = grouped_auc(
      Groups{7, 7, 9, 9, 9, 9, 5, 5}, Floats{.1F, .2F, .5F, .6F, .4F, std::nanf(""), .1F, .2F},
      Floats{0, 1, 1, 0, 0, 1, 0, 1}, Floats{1, 3, 1, 2, 1, 0, 1, 0});
  EXPECT_DOUBLE_EQ(result.auc, (4 * 1.0 + 4 * (1.0 / 3)) / 8);
  EXPECT_EQ(result.num_groups, 2);
}

TEST(GroupedAuc, IsUndefinedWhereNoGroupCounts) {
  EXPECT_TRUE(std::isnan(grouped_auc(Groups{}, Floats{}, Floats{}).auc));
  EXPECT_EQ(grouped_auc(Groups{1, 2}, Floats{.1F, .2F}, Floats{0, 1}).num_groups, 0);
  EXPECT_TRUE(std::isnan(grouped_auc(Groups{1, 2}, Floats{.1F, .2F}, Floats{0, 1}).auc));
  EXPECT_TRUE(std::isnan(grouped_auc(Groups{1, 1}, Floats{std::nanf(""), .2F}, Floats{0, 1}).auc));
}

TEST(GroupedAuc, RefusesWrongSizesAndLabels) {
  EXPECT_THROW(grouped_auc(Groups{1}, Floats{.5F}, Floats{}), Error);
  EXPECT_THROW(grouped_auc(Groups{}, Floats{.5F}, Floats{1}), Error);
  EXPECT_THROW(grouped_auc(Groups{1}, Floats{.5F}, Floats{.5F}), Error);
}

TEST(GroupedAuc, AgreesWithGroupByGroupInAnyOrderOfTheRows) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RandomStream random{hash64(seed, 78)};
    const std::size_t num_rows = 500;
    Groups groups(num_rows);
    Floats scores(num_rows), labels(num_rows), weights(num_rows, 1.0F);
    for (std::size_t i = 0; i < num_rows; ++i) {
      groups[i] = random.below(3 * i, 1 + 30 * seed);  // kNoGroup among them
      scores[i] = std::round(random.uniform(3 * i + 1) * 20.0F);
      labels[i] = random.uniform(3 * i + 2) < 0.3F ? 1.0F : 0.0F;
    }
    groups[0] = groups[1] = 1;  // one that counts
    labels[0] = 0.0F;
    labels[1] = 1.0F;
    if (seed % 2 == 1) {
      for (std::size_t i = 2; i < num_rows; ++i) {
        weights[i] = std::max(0.0F, random.uniform(3 * num_rows + i) * 3.0F - 0.5F);
      }
    }
    const Floats given = seed % 2 == 1 ? weights : Floats();
    const GroupedAuc expected = group_by_group(groups, scores, labels, weights);
    const GroupedAuc result = grouped_auc(groups, scores, labels, given);
    EXPECT_NEAR(result.auc, expected.auc, 1e-12) << "seed " << seed;
    EXPECT_EQ(result.num_groups, expected.num_groups) << "seed " << seed;

    std::ranges::reverse(groups);
    std::ranges::reverse(scores);
    std::ranges::reverse(labels);
    Floats reversed = given;
    std::ranges::reverse(reversed);
    EXPECT_EQ(grouped_auc(groups, scores, labels, reversed).auc, result.auc) << "seed " << seed;
  }
}

}  // namespace
}  // namespace satrap
