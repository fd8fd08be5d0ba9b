#include "satrap/core/sorted_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"

namespace satrap {
namespace {

using Floats = std::vector<float>;
using Rows = std::vector<std::pair<float, float>>;

Rows rows_of(const SortedScores& sorted) {
  Rows rows;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    rows.emplace_back(sorted.score(i), sorted.label(i));
  }
  return rows;
}

TEST(SortedScores, AreInOrderWithTheirLabels) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const SortedScores sorted(Floats{.5F, -2, kInfinity, 0, 1e-45F, -kInfinity},
                            Floats{1, 0, 1, 0, 1, 0});
  EXPECT_EQ(rows_of(sorted),
            (Rows{{-kInfinity, 0}, {-2, 0}, {0, 0}, {1e-45F, 1}, {.5F, 1}, {kInfinity, 1}}));
}

TEST(SortedScores, NegativeZeroIsZero) {
  const SortedScores sorted(Floats{-0.0F, -1}, Floats{1, 0});
  EXPECT_FALSE(std::signbit(sorted.score(1)));
}

TEST(SortedScores, MayBeNone) {
  EXPECT_EQ(SortedScores({}, {}).size(), 0U);
  EXPECT_THROW(SortedScores(Floats{1}, {}), Error);
}

TEST(SortedScores, WithWeightsLeaveOutRowsOfNone) {
  const SortedScores sorted(Floats{.5F, std::nanf(""), .25F}, Floats{1, 1, 0}, Floats{2, 0, .5F});
  EXPECT_EQ(rows_of(sorted), (Rows{{.25F, 0}, {.5F, 1}}));
  EXPECT_EQ(sorted.weight(0), 0.5);
  EXPECT_EQ(sorted.weight(1), 2.0);
  EXPECT_EQ(SortedScores(Floats{1}, Floats{1}, Floats{0}).size(), 0U);
}

TEST(SortedScores, WithWeightsEqualScoresAscendByLabelAndWeight) {
  const SortedScores sorted(Floats(4, .5F), Floats{1, 0, 1, 0}, Floats{3, 2, 1, 4});
  EXPECT_EQ(rows_of(sorted), (Rows{{.5F, 0}, {.5F, 0}, {.5F, 1}, {.5F, 1}}));
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(sorted.weight(i), (std::vector<double>{2, 4, 1, 3})[i]);
  }
}

TEST(SortedScores, RefuseWeightsThatAreNone) {
  for (const float weight : {-1.0F, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    EXPECT_THROW(SortedScores(Floats{1}, Floats{1}, Floats{weight}), Error);
  }
  EXPECT_THROW(SortedScores(Floats{1}, Floats{1}, Floats{1, 1}), Error);
}

TEST(SortedScores, AreThoseOfAnySort) {
  const RandomStream random{hash64(3, 5)};
  Floats scores, labels;
  Rows expected;
  for (std::uint64_t n = 0; n < 5000; ++n) {
    scores.push_back(static_cast<float>(random.below(2 * n, 1000)) - 500.0F);
    labels.push_back(random.uniform(2 * n + 1));
    expected.emplace_back(scores.back(), labels.back());
  }
  Rows actual = rows_of(SortedScores(scores, labels));
  EXPECT_TRUE(std::ranges::is_sorted(actual, {}, &Rows::value_type::first));
  std::ranges::sort(actual);
  std::ranges::sort(expected);
  EXPECT_EQ(actual, expected);
}

}  // namespace
}  // namespace satrap
