#include "satrap/kernels/row_update.h"

#include <cmath>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace satrap {
namespace {

using enum RowOptimizerType;

/// One row updated as row_optimizer.h defines, element by element in double.
struct ExactRow {
  ExactRow(const RowOptimizer& o, const std::vector<float>& initial)
      : optimizer(o),
        w(initial.begin(), initial.end()),
        n(w.size(), o.initial_accumulator),
        m(w.size()),
        v(w.size()),
        z(w.size()) {
    for (std::size_t d = 0; d < w.size(); ++d) {
      const double sign = w[d] > 0 ? 1 : -1;
      z[d] = w[d] == 0 ? 0 : -(w[d] * curvature(n[d]) + sign * o.ftrl_l1);
    }
  }

  double curvature(double squares) const {
    return (optimizer.ftrl_beta + std::sqrt(squares)) / optimizer.lr + optimizer.ftrl_l2;
  }

  void step(std::vector<double> g, double factor, double t) {
    const RowOptimizer& o = optimizer;
    const double lr = o.lr * factor;
    double mean_square = 0;
    for (std::size_t d = 0; d < w.size(); ++d) {
      g[d] += o.weight_decay * w[d];
      mean_square += g[d] * g[d] / static_cast<double>(w.size());
    }
    for (std::size_t d = 0; d < w.size(); ++d) {
      switch (o.type) {
        case kSgd:
          w[d] -= lr * g[d];
          break;
        case kAdagrad:
          n[d] += g[d] * g[d];
          w[d] -= lr * g[d] / (std::sqrt(n[d]) + o.eps);
          break;
        case kRowwiseAdagrad:
          n[d] += mean_square;
          w[d] -= lr * g[d] / (std::sqrt(n[d]) + o.eps);
          break;
        case kAdam:
          m[d] = o.beta1 * m[d] + (1.0 - o.beta1) * g[d];
          v[d] = o.beta2 * v[d] + (1.0 - o.beta2) * g[d] * g[d];
          w[d] -= lr * std::sqrt(1 - std::pow(o.beta2, t)) / (1 - std::pow(o.beta1, t)) * m[d] /
                  (std::sqrt(v[d]) + o.eps);
          break;
        case kFtrl: {
          const double sum = n[d] + g[d] * g[d];
          z[d] += factor * g[d] - (std::sqrt(sum) - std::sqrt(n[d])) / o.lr * w[d];
          n[d] = sum;
          const double sign = z[d] > 0 ? 1 : -1;
          w[d] = std::abs(z[d]) <= o.ftrl_l1 ? 0 : (sign * o.ftrl_l1 - z[d]) / curvature(n[d]);
          break;
        }
      }
    }
  }

  RowOptimizer optimizer;
  std::vector<double> w, n, m, v, z;
};

/// A row in floats, as in tables.
struct Row {
  Row(const RowOptimizer& o, std::vector<float> initial)
      : optimizer(o),
        weights(std::move(initial)),
        state(static_cast<std::size_t>(state_floats(o.type, std::ssize(weights)))) {
    optimizer.initialize_state(weights.data(), state.data(), std::ssize(weights));
  }
  void step(const std::vector<float>& grad, double factor, std::int64_t t, bool fixed_dim = true) {
    const RowStep row_step(optimizer, factor, t);
    with_optimizer(optimizer.type, [&](auto type) {
      const auto update = [&](auto dim) {
        update_row<type()>(row_step, weights.data(), state.data(), grad.data(), dim);
      };
      if (fixed_dim) {
        with_dim(std::ssize(weights), update);
      } else {
        update(static_cast<std::int64_t>(std::ssize(weights)));
      }
    });
  }
  RowOptimizer optimizer;
  std::vector<float> weights, state;
};

RowOptimizer optimizer_of(RowOptimizerType type) {
  RowOptimizer o;
  o.type = type;
  o.lr = 0.05F;
  o.weight_decay = 0.02F;
  o.initial_accumulator = 0.1F;
  o.ftrl_l1 = 0.01F;
  o.ftrl_l2 = 0.1F;
  return o;
}

class UpdateRow : public testing::TestWithParam<RowOptimizerType> {};

TEST_P(UpdateRow, FollowsTheFormula) {
  for (const std::size_t dim : std::initializer_list<std::size_t>{1, 3, 8, 16, 17, 32, 64, 100}) {
    std::mt19937 random(static_cast<unsigned>(dim));
    std::normal_distribution<float> normal;
    std::vector<float> initial(dim);
    for (float& w : initial) w = 0.1F * normal(random);
    initial[0] = 0.0F;
    Row row(optimizer_of(GetParam()), initial);
    Row dynamic = row;
    ExactRow exact(row.optimizer, initial);
    for (std::int64_t t = 1; t <= 20; ++t) {
      std::vector<float> grad(dim);
      for (float& g : grad) g = normal(random);
      const double factor = 1.0 / static_cast<double>(t);
      row.step(grad, factor, t);
      dynamic.step(grad, factor, t, false);
      exact.step({grad.begin(), grad.end()}, factor, static_cast<double>(t));
    }
    EXPECT_EQ(row.weights, dynamic.weights) << "a width known at compile time changes bits";
    EXPECT_EQ(row.state, dynamic.state);
    for (std::size_t d = 0; d < dim; ++d) {
      EXPECT_NEAR(row.weights[d], exact.w[d], 1e-5) << "dim " << dim << ", element " << d;
    }
  }
}

TEST_P(UpdateRow, WeightDecayPullsTowardsZeroWithoutAGradient) {
  RowOptimizer o = optimizer_of(GetParam());
  o.ftrl_l1 = 0.0F;
  Row row(o, {0.5F, -0.5F});
  row.step({0.0F, 0.0F}, 1.0, 1);
  EXPECT_LT(row.weights[0], 0.5F);
  EXPECT_GT(row.weights[1], -0.5F);
  EXPECT_FLOAT_EQ(row.weights[0], -row.weights[1]);
}

INSTANTIATE_TEST_SUITE_P(Types,
                         UpdateRow,
                         testing::Values(kSgd, kAdagrad, kRowwiseAdagrad, kAdam, kFtrl));

TEST(UpdateRowTest, SgdStepsAgainstTheGradient) {
  RowOptimizer o;
  o.type = kSgd;
  o.lr = 0.5F;
  Row row(o, {1.0F, 2.0F});
  row.step({2.0F, -4.0F}, 1.0, 1);
  EXPECT_THAT(row.weights, testing::ElementsAre(0.0F, 4.0F));
  EXPECT_TRUE(row.state.empty());
}

TEST(UpdateRowTest, FirstAdagradStepHasTheSizeOfTheRate) {
  RowOptimizer o;
  o.lr = 0.5F;
  Row row(o, {1.0F, 1.0F});
  row.step({3.0F, -0.001F}, 1.0, 1);
  EXPECT_THAT(row.weights, testing::ElementsAre(testing::FloatNear(0.5F, 1e-6F),
                                                testing::FloatNear(1.5F, 1e-4F)));
}

TEST(UpdateRowTest, FtrlRowStartsAtItsWeightsAndStaysThereWithoutAGradient) {
  RowOptimizer o = optimizer_of(kFtrl);
  o.weight_decay = 0.0F;
  Row row(o, {0.5F, -0.25F, 0.0F});
  row.step({0.0F, 0.0F, 0.0F}, 1.0, 1);
  row.step({0.0F, 0.0F, 0.0F}, 0.1, 2);  // a new learning rate changes no weight either
  EXPECT_THAT(row.weights, testing::ElementsAre(testing::FloatNear(0.5F, 1e-6F),
                                                testing::FloatNear(-0.25F, 1e-6F), 0.0F));
}

TEST(UpdateRowTest, FtrlWithoutRegularisationIsAdagradUnderTheSameSchedule) {
  RowOptimizer ftrl;
  ftrl.type = kFtrl;
  ftrl.ftrl_beta = 1e-3F;
  ftrl.lr = 0.1F;
  RowOptimizer adagrad = ftrl;
  adagrad.type = kAdagrad;
  adagrad.eps = 1e-3F;
  Row a(ftrl, {0.3F, -0.2F}), b(adagrad, {0.3F, -0.2F});
  for (std::int64_t t = 1; t <= 5; ++t) {
    const std::vector<float> grad = {1.0F / static_cast<float>(t), -0.5F};
    a.step(grad, 1.0 / static_cast<double>(t), t);
    b.step(grad, 1.0 / static_cast<double>(t), t);
  }
  EXPECT_THAT(a.weights, testing::Pointwise(testing::FloatNear(1e-5F), b.weights));
}

TEST(UpdateRowTest, FtrlL1MakesSmallWeightsExactlyZero) {
  RowOptimizer o = optimizer_of(kFtrl);
  o.weight_decay = 0.0F;
  o.ftrl_l1 = 5.0F;
  Row row(o, {0.001F});
  row.step({6.0F}, 1.0, 1);
  EXPECT_EQ(row.weights[0], 0.0F);
}

}  // namespace
}  // namespace satrap
