#include <gtest/gtest.h>

#include "src/dense/ops.h"
#include "tests/dense/exact_derivatives.h"

namespace satrap::dense {
namespace {

TEST(AttentionOps, AttentionLooksAtElementsOnly) {
  // Row 0 has its elements at places 0 and 2, row 1 has none.
  Floats query = {2, 5}, keys = {3, kNan, 4, kNan, kNan, kNan}, mask = {1, 0, 1, 0, 0, 0};
  EXPECT_EQ(num_elements(matrix(mask, 2)), 2);
  Floats pairs(2 * 4);
  attention_pairs(matrix(query, 2), matrix(keys, 2), matrix(mask, 2), matrix(pairs, 2));
  EXPECT_EQ(pairs, (Floats{2, 3, -1, 6, 2, 4, -2, 8}));
  Floats scores = {10, 100}, y(2, kNan);
  attention_sum(matrix(keys, 2), matrix(mask, 2), matrix(scores, 2), matrix(y, 2));
  EXPECT_EQ(y, (Floats{430, 0}));
}

TEST(AttentionOps, GradientsOfAttention) {
  std::mt19937_64 random(1);
  constexpr std::int64_t kRows = 3, kLength = 4;
  for (const std::int64_t width : {1, 5, 16, 19}) {
    Floats query = whole(random, static_cast<std::size_t>(kRows * width));
    Floats keys = whole(random, static_cast<std::size_t>(kRows * kLength * width));
    Floats mask = {1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1};
    const std::int64_t n = num_elements(matrix(mask, kRows));
    ASSERT_EQ(n, 7);
    const auto pairs_of = [&] {
      Floats pairs(static_cast<std::size_t>(n * 4 * width));
      attention_pairs(matrix(query, kRows), matrix(keys, kRows), matrix(mask, kRows),
                      matrix(pairs, n));
      return pairs;
    };
    Floats dpairs = whole(random, static_cast<std::size_t>(n * 4 * width));
    Floats dquery(query.size()), dkeys(keys.size());
    attention_pairs_backward(matrix(query, kRows), matrix(keys, kRows), matrix(mask, kRows),
                             matrix(dpairs, n), matrix(dquery, kRows), matrix(dkeys, kRows));
    EXPECT_EQ(dquery, derivatives(query, pairs_of, dpairs));
    const Floats dkeys_of_pairs = derivatives(keys, pairs_of, dpairs);
    EXPECT_EQ(dkeys, dkeys_of_pairs);

    Floats scores = whole(random, static_cast<std::size_t>(n)), dscores(scores.size(), kNan);
    const auto sum_of = [&] {
      Floats y(static_cast<std::size_t>(kRows * width));
      attention_sum(matrix(keys, kRows), matrix(mask, kRows), matrix(scores, n), matrix(y, kRows));
      return y;
    };
    Floats dy = whole(random, static_cast<std::size_t>(kRows * width));
    attention_sum_backward(matrix(keys, kRows), matrix(mask, kRows), matrix(scores, n),
                           matrix(dy, kRows), matrix(dscores, n), matrix(dkeys, kRows));
    EXPECT_EQ(dscores, derivatives(scores, sum_of, dy));
    Floats both = derivatives(keys, sum_of, dy);
    for (std::size_t i = 0; i < both.size(); ++i) both[i] += dkeys_of_pairs[i];
    EXPECT_EQ(dkeys, both);  // that of the keys is added
  }
}

}  // namespace
}  // namespace satrap::dense
