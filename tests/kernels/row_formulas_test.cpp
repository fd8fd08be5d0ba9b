#include "satrap/kernels/row_formulas.h"

#include <array>

#include <gtest/gtest.h>

namespace satrap {
namespace {

using enum RowOptimizerType;

TEST(RowFormulas, WeightDecayAddsToTheGradient) {
  const RowStep step({.type = kSgd, .lr = 0.5F, .weight_decay = 0.25F}, 1.0, 1);
  EXPECT_EQ(decayed(step, 1.0F, 8.0F), 3.0F);
  float w = 8.0F, none = 0.0F;
  step_element<kSgd>(step, 1.0F, w, none, none);
  EXPECT_EQ(w, 6.5F);
}

TEST(RowFormulas, AdagradDividesByTheRootOfTheSumOfSquares) {
  const RowStep step({.type = kAdagrad, .lr = 0.5F, .eps = 0.0F}, 1.0, 1);
  float w = 1.0F, n = 9.0F, none = 0.0F;
  step_element<kAdagrad>(step, 4.0F, w, n, none);
  EXPECT_EQ(n, 25.0F);
  EXPECT_EQ(w, 1.0F - 0.5F * 4.0F / 5.0F);
}

TEST(RowFormulas, RowwiseAdagradAddsTheMeanOfTheSquares) {
  const RowStep step({.type = kRowwiseAdagrad, .lr = 0.5F, .eps = 1.0F}, 1.0, 1);
  float n = 1.0F;
  EXPECT_EQ(rowwise_rate(step, 32.0F, 4, n), 0.5F / (3.0F + 1.0F));
  EXPECT_EQ(n, 9.0F);
}

TEST(RowFormulas, EightSumsAreAddedInPairs) {
  constexpr float kLarge = 0x1.0p24F;  // 1 more is lost
  EXPECT_EQ(sum_of_eight(std::array{kLarge, 0.0F, 0.0F, 0.0F, -kLarge, 1.0F, 0.0F, 0.0F}), 1.0F);
  EXPECT_EQ(sum_of_eight(std::array{kLarge, 0.0F, 0.0F, 0.0F, 1.0F, 0.0F, -kLarge, 0.0F}), 0.0F);
}

}  // namespace
}  // namespace satrap
