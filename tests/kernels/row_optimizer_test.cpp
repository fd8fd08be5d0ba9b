#include "satrap/kernels/row_optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap {
namespace {

using enum RowOptimizerType;

TEST(RowOptimizer, TypesHaveTheNamesOfConfigurations) {
  EXPECT_EQ(name_of(kSgd), std::string("sgd"));
  EXPECT_EQ(name_of(kAdagrad), std::string("adagrad"));
  EXPECT_EQ(name_of(kRowwiseAdagrad), std::string("rowwise_adagrad"));
  EXPECT_EQ(name_of(kAdam), std::string("adam"));
  EXPECT_EQ(name_of(kFtrl), std::string("ftrl"));
}

TEST(RowOptimizer, OptionsOfATypeAreAmongAll) {
  for (const RowOptimizerKind& kind : kRowOptimizers) {
    for (const char* own : kind.options) {
      if (own == nullptr) continue;
      EXPECT_TRUE(kind.has(own)) << own;
      EXPECT_EQ(std::ranges::count(kRowOptions, std::string(own), &RowOption::name), 1) << own;
    }
    EXPECT_FALSE(kind.has("lr")) << "every type has it";
  }
  EXPECT_TRUE(kind_of(kAdam).has("beta1"));
  EXPECT_FALSE(kind_of(kFtrl).has("beta1"));
}

TEST(RowOptimizer, StateHasWholeVectorsOfFour) {
  for (const std::int64_t dim : {1, 3, 4}) {
    EXPECT_EQ(state_floats(kSgd, dim), 0);
    EXPECT_EQ(state_floats(kAdagrad, dim), 4);
    EXPECT_EQ(state_floats(kRowwiseAdagrad, dim), 1);
    EXPECT_EQ(state_floats(kAdam, dim), 8);
    EXPECT_EQ(state_floats(kFtrl, dim), 8);
  }
  EXPECT_EQ(state_floats(kAdam, 5), 16);
  EXPECT_THROW(state_floats(static_cast<RowOptimizerType>(9), 4), Error);
}

constexpr float kUntouched = -7.0F;

/// The state of a new row of these weights; what is not written is kUntouched.
std::vector<float> new_state(const RowOptimizer& optimizer, const std::vector<float>& weights) {
  const auto dim = std::ssize(weights);
  std::vector<float> state(static_cast<std::size_t>(state_floats(optimizer.type, dim)) + 1,
                           kUntouched);
  optimizer.initialize_state(weights.data(), state.data(), dim);
  EXPECT_EQ(state.back(), kUntouched) << "written beyond the state";
  state.pop_back();
  return state;
}

TEST(RowOptimizer, StateStartsAtTheInitialAccumulatorAndLeavesThePadding) {
  constexpr float kGap = kUntouched;
  const std::vector<float> w = {1.0F, -2.0F, 0.0F};
  EXPECT_EQ(new_state({.type = kSgd, .initial_accumulator = 0.5F}, w), std::vector<float>{});
  EXPECT_EQ(new_state({.type = kAdagrad, .initial_accumulator = 0.5F}, w),
            (std::vector<float>{0.5F, 0.5F, 0.5F, kGap}));
  EXPECT_EQ(new_state({.type = kRowwiseAdagrad, .initial_accumulator = 0.5F}, w),
            std::vector<float>{0.5F});
  EXPECT_EQ(new_state({.type = kAdam, .initial_accumulator = 0.5F}, w),
            (std::vector<float>{0, 0, 0, kGap, 0, 0, 0, kGap}));
}

TEST(RowOptimizer, FtrlStartsAtTheStateThatRepresentsTheWeights) {
  constexpr float kGap = kUntouched;
  const RowOptimizer optimizer{.type = kFtrl,
                               .lr = 0.5F,
                               .initial_accumulator = 4.0F,
                               .ftrl_beta = 1.0F,
                               .ftrl_l1 = 0.25F,
                               .ftrl_l2 = 2.0F};
  // (beta + sqrt(n)) / a + l2 = 8; z = -(8 w + sign(w) l1).
  EXPECT_EQ(new_state(optimizer, {1.0F, -2.0F, 0.0F}),
            (std::vector<float>{-8.25F, 16.25F, 0.0F, kGap, 4.0F, 4.0F, 4.0F, kGap}));
}

TEST(RowStep, RateIsThatOfTheOptimizerTimesTheSchedule) {
  const RowOptimizer optimizer{.type = kAdagrad, .lr = 0.5F, .weight_decay = 0.125F, .eps = 0.25F};
  const RowStep step(optimizer, 0.5, 10);
  EXPECT_EQ(step.lr, 0.25F);
  EXPECT_EQ(step.factor, 0.5F);
  EXPECT_EQ(step.weight_decay, 0.125F);
  EXPECT_EQ(step.eps, 0.25F);
}

TEST(RowStep, AdamsRateHasTheBiasCorrectionOfTheStep) {
  const RowOptimizer optimizer{.type = kAdam, .lr = 3.0F, .beta1 = 0.5F, .beta2 = 0.75F};
  // lr * sqrt(1 - 0.75^t) / (1 - 0.5^t)
  EXPECT_EQ(RowStep(optimizer, 1.0, 1).lr, 3.0F);
  EXPECT_FLOAT_EQ(RowStep(optimizer, 1.0, 2).lr, std::sqrt(7.0F));
  EXPECT_FLOAT_EQ(RowStep(optimizer, 0.5, 2).lr, std::sqrt(7.0F) / 2);
  EXPECT_EQ(RowStep(optimizer, 1.0, std::numeric_limits<std::int32_t>::max()).lr, 3.0F);
  EXPECT_EQ(RowStep(optimizer, 1.0, 2).one_minus_beta1, 0.5F);
  EXPECT_EQ(RowStep(optimizer, 1.0, 2).one_minus_beta2, 0.25F);
}

TEST(RowStep, OnlyAdamsRateDependsOnTheStep) {
  for (const RowOptimizerType type : {kSgd, kAdagrad, kRowwiseAdagrad, kFtrl}) {
    EXPECT_EQ(RowStep({.type = type, .lr = 0.5F}, 1.0, 1).lr, 0.5F);
    EXPECT_EQ(RowStep({.type = type, .lr = 0.5F}, 1.0, 100).lr, 0.5F);
  }
}

TEST(RowStep, FtrlDividesByTheRateWithoutTheSchedule) {
  const RowStep step({.type = kFtrl, .lr = 0.25F, .ftrl_beta = 2.0F, .ftrl_l1 = 3.0F}, 0.5, 1);
  EXPECT_EQ(step.ftrl_inverse_lr, 4.0F);
  EXPECT_EQ(step.factor, 0.5F);
  EXPECT_EQ(step.ftrl_beta, 2.0F);
  EXPECT_EQ(step.ftrl_l1, 3.0F);
  EXPECT_EQ(step.ftrl_l2, 0.0F);
}

}  // namespace
}  // namespace satrap
