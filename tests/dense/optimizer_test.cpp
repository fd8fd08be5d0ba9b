#include <cmath>

#include <gtest/gtest.h>

#include "tests/dense/network_fixture.h"

namespace satrap::dense {
namespace {

// A network of two parameters (weight, bias) whose gradient is set by hand through gradient().
class OptimizerOfTwoParameters : public testing::Test {
 protected:
  std::vector<float> after(const job::DenseOptimizerConfig& config,
                           const std::vector<std::vector<float>>& gradients,
                           const std::vector<float>& start = {1.0F, -2.0F}) {
    ThreadPool pool(1);
    const auto network =
        make_network({"", {.type = job::ModelType::kLogistic}, {1, {}}}, pool, config);
    network->load_parameters(start);
    std::int64_t step = 0;
    for (const std::vector<float>& gradient : gradients) {
      std::ranges::copy(gradient, network->gradient().begin());
      network->apply(++step);
    }
    return parameters(*network);
  }
};

void expect_near(const std::vector<float>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6) << i;
}

TEST_F(OptimizerOfTwoParameters, SgdStepsAgainstTheGradient) {
  expect_near(after(optimizer_of(DenseOptimizerType::kSgd, 0.1), {{2.0F, 1.0F}}), {0.8, -2.1});
}

TEST_F(OptimizerOfTwoParameters, SgdMomentumKeepsGoing) {
  job::DenseOptimizerConfig config = optimizer_of(DenseOptimizerType::kSgd, 0.1);
  config.momentum = 0.5;
  // buffer 2, then 0.5 * 2 + 1 = 2
  expect_near(after(config, {{2.0F, 0.0F}, {1.0F, 0.0F}}), {1.0 - 0.2 - 0.2, -2.0});
}

TEST_F(OptimizerOfTwoParameters, WeightDecayPullsTowardsZero) {
  job::DenseOptimizerConfig config = optimizer_of(DenseOptimizerType::kSgd, 0.1);
  config.weight_decay = 0.5;
  expect_near(after(config, {{0.0F, 0.0F}}), {1.0 - 0.05, -2.0 + 0.1});
}

TEST_F(OptimizerOfTwoParameters, AdagradDividesByTheRootOfTheSum) {
  job::DenseOptimizerConfig config = optimizer_of(DenseOptimizerType::kAdagrad, 0.1);
  config.initial_accumulator = 7.0;
  // sqrt(7 + 9) = 4, then sqrt(16 + 9) = 5
  expect_near(after(config, {{3.0F, 0.0F}, {-3.0F, 0.0F}}),
              {1.0 - 0.1 * 3 / 4 + 0.1 * 3 / 5, -2.0});
}

TEST_F(OptimizerOfTwoParameters, AdamFirstStepHasTheSizeOfTheLearningRate) {
  expect_near(after(optimizer_of(DenseOptimizerType::kAdam, 0.1), {{1e-3F, -50.0F}}), {0.9, -1.9});
}

TEST_F(OptimizerOfTwoParameters, AdamWDecaysApartFromTheGradient) {
  job::DenseOptimizerConfig config = optimizer_of(DenseOptimizerType::kAdamW, 0.1);
  config.weight_decay = 0.5;
  expect_near(after(config, {{4.0F, -4.0F}}), {1.0 * 0.95 - 0.1, -2.0 * 0.95 + 0.1});
}

TEST_F(OptimizerOfTwoParameters, ClippingScalesALongGradientOnly) {
  job::DenseOptimizerConfig config = optimizer_of(DenseOptimizerType::kSgd, 1.0);
  config.clip_norm = 2.5;
  expect_near(after(config, {{3.0F, 4.0F}}), {1.0 - 1.5, -2.0 - 2.0});  // norm 5: halved
  expect_near(after(config, {{0.3F, 0.4F}}), {1.0 - 0.3, -2.0 - 0.4});  // norm 0.5: as it is
}

TEST_F(OptimizerOfTwoParameters, ScheduleScalesTheLearningRate) {
  job::DenseOptimizerConfig config = optimizer_of(DenseOptimizerType::kSgd, 1.0);
  config.schedule.warmup_steps = 4;
  // factors 1/4, 2/4, 3/4, 1, 1
  expect_near(after(config, {5, {1.0F, 0.0F}}), {1.0 - 3.5, -2.0});
}

TEST(DenseNetwork, ReportsTheNormBeforeClipping) {
  ThreadPool pool(1);
  job::DenseOptimizerConfig config = optimizer_of(DenseOptimizerType::kSgd, 0.1);
  const ModelCase c = model_named("dlrm");
  const auto plain = make_network(c, pool, config);
  config.clip_norm = 1e-3;
  const auto clipped = make_network(c, pool, config);
  Batch batch(c.shape, 50, 1);
  const double norm = batch.run(*plain).grad_norm;
  EXPECT_GT(norm, 1e-3);
  EXPECT_EQ(batch.run(*clipped).grad_norm, norm);
}

}  // namespace
}  // namespace satrap::dense
