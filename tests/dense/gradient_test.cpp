#include <cmath>

#include <gtest/gtest.h>

#include "tests/dense/network_fixture.h"

namespace satrap::dense {
namespace {

class Gradient : public testing::TestWithParam<ModelCase> {};

double loss_of(DenseNetwork& network, Batch batch) { return batch.run(network).loss; }

// Moving along the gradient g by h changes the loss by h |g|^2.
void expect_slope(double up, double down, double h, double squared_norm) {
  EXPECT_NEAR((up - down) / (2 * h), squared_norm, 2e-3 * squared_norm);
}

TEST_P(Gradient, OfParametersIsTheSlopeOfTheLoss) {
  ThreadPool pool(1);
  const auto network = make_network(GetParam(), pool);
  Batch batch(GetParam().shape, 700, 1);
  const DenseResult result = batch.run(*network);
  const std::vector<float> gradient(network->gradient().begin(), network->gradient().end());
  const double squared = result.grad_norm * result.grad_norm, h = 1e-3 / result.grad_norm;
  const std::vector<float> original = parameters(*network);
  ASSERT_EQ(original.size(), gradient.size());
  const auto loss_at = [&](double distance) {
    std::vector<float> moved = original;
    for (std::size_t i = 0; i < moved.size(); ++i) {
      moved[i] += static_cast<float>(distance) * gradient[i];
    }
    network->load_parameters(moved);
    return loss_of(*network, batch);
  };
  expect_slope(loss_at(h), loss_at(-h), h, squared);
}

TEST_P(Gradient, OfPooledInputIsTheSlopeOfTheLoss) {
  ThreadPool pool(1);
  const auto network = make_network(GetParam(), pool);
  Batch batch(GetParam().shape, 700, 1);
  batch.run(*network);
  double squared = 0.0;
  for (const float g : batch.grad_pooled)
    squared += static_cast<double>(g) * static_cast<double>(g);
  ASSERT_GT(squared, 0.0);
  const double h = 0.02 / std::sqrt(squared);
  const auto loss_at = [&](double distance) {
    Batch moved = batch;
    for (std::size_t i = 0; i < moved.pooled.size(); ++i) {
      moved.pooled[i] += static_cast<float>(distance) * batch.grad_pooled[i];
    }
    return loss_of(*network, moved);
  };
  expect_slope(loss_at(h), loss_at(-h), h, squared);
}

INSTANTIATE_TEST_SUITE_P(Models, Gradient, testing::ValuesIn(all_models()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Labels,
                         Gradient,
                         testing::ValuesIn(models_of_several_labels()),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Experts, Gradient, testing::ValuesIn(models_of_experts()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Losses, Gradient, testing::ValuesIn(models_of_losses()), name_of_case);

TEST(Logistic, AgreesWithPaperAndPencil) {
  ThreadPool pool(1);
  const ModelCase logistic{"", {.type = job::ModelType::kLogistic}, {1, {1, 1}}};
  const auto network = make_network(logistic, pool, optimizer_of(DenseOptimizerType::kSgd, 0.5));
  network->load_parameters(std::vector<float>{2.0F, -1.0F});  // weight, bias
  Batch batch(logistic.shape, 2, 0);
  batch.numeric = {0.5F, 1.0F};
  batch.pooled = {0.25F, -0.25F, 1.0F, 0.5F};  // logits 2*0.5-1+0 = 0 and 2*1-1+1.5 = 2.5
  batch.labels = {1.0F, 0.0F};
  const DenseResult result = batch.run(*network);

  const double p = 1 / (1 + std::exp(-2.5));
  EXPECT_NEAR(batch.probabilities[0], 0.5, 1e-7);
  EXPECT_NEAR(batch.probabilities[1], p, 1e-7);
  EXPECT_NEAR(result.loss, (std::log(2.0) + std::log1p(std::exp(2.5))) / 2, 1e-7);
  for (int column : {0, 1}) {
    EXPECT_NEAR(batch.grad_pooled[static_cast<std::size_t>(column)], -0.25, 1e-7);
    EXPECT_NEAR(batch.grad_pooled[static_cast<std::size_t>(2 + column)], p / 2, 1e-7);
  }
  const double weight_gradient = 0.5 * -0.25 + 1.0 * p / 2, bias_gradient = -0.25 + p / 2;
  EXPECT_NEAR(network->gradient()[0], weight_gradient, 1e-7);
  EXPECT_NEAR(network->gradient()[1], bias_gradient, 1e-7);
  EXPECT_NEAR(result.grad_norm, std::hypot(weight_gradient, bias_gradient), 1e-7);

  network->apply(1);
  EXPECT_NEAR(network->save()[0].values[0], 2.0 - 0.5 * weight_gradient, 1e-6);
  EXPECT_NEAR(network->save()[1].values[0], -1.0 - 0.5 * bias_gradient, 1e-6);
}

TEST(Loss, OfHugeLogitsIsFinite) {
  ThreadPool pool(1);
  const ModelCase logistic{"", {.type = job::ModelType::kLogistic}, {0, {1}}};
  const auto network = make_network(logistic, pool);
  Batch batch(logistic.shape, 2, 0);
  batch.pooled = {500.0F, -500.0F};
  batch.labels = {0.0F, 0.0F};
  const DenseResult result = batch.run(*network);
  EXPECT_TRUE(result.finite);
  EXPECT_NEAR(result.loss, 250.0, 1e-4);
  EXPECT_EQ(batch.probabilities[0], 1.0F);
  EXPECT_EQ(batch.grad_pooled[1], 0.0F);
}

}  // namespace
}  // namespace satrap::dense
