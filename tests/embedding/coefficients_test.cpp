#include "src/embedding/coefficients.h"

#include <vector>

#include <gtest/gtest.h>

namespace satrap::embedding {
namespace {

using Floats = std::vector<float>;

Floats coefficients(Pooling pooling, const Floats& weights) {
  Floats out(weights.size() + 1, -9.0F);
  fill_coefficients(pooling, weights.data(), std::ssize(weights), out.data());
  EXPECT_EQ(out.back(), -9.0F) << "written beyond the bag";
  out.pop_back();
  return out;
}

Floats without_weights(Pooling pooling, std::int64_t num_ids) {
  Floats out(static_cast<std::size_t>(num_ids) + 1, -9.0F);
  fill_coefficients(pooling, nullptr, num_ids, out.data());
  EXPECT_EQ(out.back(), -9.0F) << "written beyond the bag";
  out.pop_back();
  return out;
}

TEST(Coefficients, WithoutWeightsEveryIdCountsTheSame) {
  EXPECT_EQ(without_weights(Pooling::kSum, 4), Floats(4, 1.0F));
  EXPECT_EQ(without_weights(Pooling::kSequence, 4), Floats(4, 1.0F));
  EXPECT_EQ(without_weights(Pooling::kMean, 4), Floats(4, 0.25F));
  EXPECT_EQ(without_weights(Pooling::kSqrtN, 4), Floats(4, 0.5F));
  EXPECT_EQ(without_weights(Pooling::kMean, 1), Floats{1.0F});
}

TEST(Coefficients, WeightsAreDividedByTheirSumOrTheRootOfTheirSquares) {
  EXPECT_EQ(coefficients(Pooling::kSum, {3, -4}), (Floats{3, -4}));
  EXPECT_EQ(coefficients(Pooling::kSequence, {3, -4}), (Floats{3, -4}));
  EXPECT_EQ(coefficients(Pooling::kMean, {1, 3}), (Floats{0.25F, 0.75F}));
  EXPECT_EQ(coefficients(Pooling::kSqrtN, {3, -4}), (Floats{3 * 0.2F, -4 * 0.2F}));
}

TEST(Coefficients, OfAnEmptyBagThereAreNone) {
  for (const Pooling pooling :
       {Pooling::kSum, Pooling::kMean, Pooling::kSqrtN, Pooling::kSequence}) {
    EXPECT_TRUE(without_weights(pooling, 0).empty());
    EXPECT_TRUE(coefficients(pooling, {}).empty());
  }
}

TEST(Coefficients, WeightsThatSumToNothingGiveZeros) {
  EXPECT_EQ(coefficients(Pooling::kMean, {1, -1}), (Floats{0, 0}));
  EXPECT_EQ(coefficients(Pooling::kSqrtN, {0, 0}), (Floats{0, 0}));
  EXPECT_EQ(coefficients(Pooling::kSum, {1, -1}), (Floats{1, -1}));
}

TEST(Coefficients, SumsRunInTheOrderOfTheBag) {
  const float big = 0x1p24F;
  EXPECT_EQ(coefficients(Pooling::kMean, {big, 1, 1}), (Floats{1, 1 / big, 1 / big}));
  EXPECT_EQ(coefficients(Pooling::kMean, {1, 1, big})[2], big * (1 / (big + 2)));
}

}  // namespace
}  // namespace satrap::embedding
