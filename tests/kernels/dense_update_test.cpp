#include "satrap/kernels/dense_update.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace satrap {
namespace {

using Dense = DenseOptimizerType;

/// Parameters with their state, as update_dense takes them.
struct DenseValues {
  explicit DenseValues(std::vector<float> values, float second_value = 0.0F)
      : p(std::move(values)), first(p.size(), 0.0F), second(p.size(), second_value) {}

  void update(const DenseOptimizer& optimizer,
              const std::vector<float>& g,
              double lr,
              double num_updates = 1,
              float scale = 1.0F) {
    update_dense(optimizer, p.data(), g.data(), first.data(), second.data(), 0, std::ssize(p),
                 scale, lr, num_updates);
  }

  std::vector<float> p, first, second;
};

TEST(DenseUpdate, SgdStepsAgainstTheScaledGradient) {
  DenseValues values({1.0F, -1.0F, 0.0F});
  values.update({.type = Dense::kSgd}, {2.0F, 0.0F, -4.0F}, 0.25, 1, 0.5F);
  EXPECT_EQ(values.p, (std::vector<float>{0.75F, -1.0F, 0.5F}));
  EXPECT_EQ(values.first, std::vector<float>(3, 0.0F));
}

TEST(DenseUpdate, SgdWithoutAGradientDecays) {
  DenseValues values({4.0F});
  values.update({.type = Dense::kSgd, .weight_decay = 0.5}, {0.0F}, 0.25);
  EXPECT_EQ(values.p[0], 3.5F);
}

TEST(DenseUpdate, MomentumGoesOnInTheDirectionOfEarlierGradients) {
  DenseValues values({0.0F});
  const DenseOptimizer optimizer{.type = Dense::kSgd, .momentum = 0.5};
  values.update(optimizer, {4.0F}, 0.25);
  EXPECT_EQ(values.first[0], 4.0F);
  EXPECT_EQ(values.p[0], -1.0F);
  values.update(optimizer, {0.0F}, 0.25);
  EXPECT_EQ(values.first[0], 2.0F);
  EXPECT_EQ(values.p[0], -1.5F);
}

TEST(DenseUpdate, AdagradDividesByTheRootOfAllSquares) {
  DenseValues values({1.0F}, 7.0F);  // the initial accumulator
  values.update({.type = Dense::kAdagrad, .eps = 0.0}, {3.0F}, 0.5);
  EXPECT_EQ(values.second[0], 16.0F);
  EXPECT_EQ(values.p[0], 1.0F - 0.5F * 0.75F);
}

TEST(DenseUpdate, AdamsFirstStepHasTheSizeOfTheRate) {
  DenseValues values({1.0F, 1.0F});
  values.update({.type = Dense::kAdam}, {5.0F, -0.01F}, 0.125);
  EXPECT_NEAR(values.p[0], 0.875F, 1e-6);
  EXPECT_NEAR(values.p[1], 1.125F, 1e-6);
}

TEST(DenseUpdate, DecayOfAdamWIsApartFromTheGradient) {
  DenseValues values({8.0F});
  values.update({.type = Dense::kAdamW, .weight_decay = 0.5}, {0.0F}, 0.25);
  EXPECT_EQ(values.p[0], 7.0F);
  EXPECT_EQ(values.first[0], 0.0F);
  EXPECT_EQ(values.second[0], 0.0F);

  DenseValues coupled({8.0F});
  coupled.update({.type = Dense::kAdam, .weight_decay = 0.5}, {0.0F}, 0.25);
  EXPECT_NEAR(coupled.p[0], 7.75F, 1e-6);  // the decay is the whole gradient: a step of the rate
}

TEST(DenseUpdate, LeavesWhatIsOutsideTheRange) {
  for (const Dense type : {Dense::kSgd, Dense::kAdagrad, Dense::kAdam, Dense::kAdamW}) {
    DenseValues values({1.0F, 1.0F, 1.0F, 1.0F});
    const std::vector<float> g(4, 1.0F);
    const DenseOptimizer optimizer{.type = type, .weight_decay = 0.1};
    const auto update = [&](std::int64_t begin, std::int64_t end) {
      update_dense(optimizer, values.p.data(), g.data(), values.first.data(), values.second.data(),
                   begin, end, 1.0F, 0.5, 1);
    };
    update(2, 2);
    EXPECT_EQ(values.p, std::vector<float>(4, 1.0F));
    update(1, 3);
    EXPECT_EQ(values.p[0], 1.0F);
    EXPECT_NE(values.p[1], 1.0F);
    EXPECT_EQ(values.p[1], values.p[2]);
    EXPECT_EQ(values.p[3], 1.0F);
  }
}

TEST(DenseUpdate, StateIsThatOfTheOptimizer) {
  const auto uses = [](const DenseOptimizer& o) {
    return std::string(o.uses_first() ? "1" : "-") + (o.uses_second() ? "2" : "-");
  };
  EXPECT_EQ(uses({.type = Dense::kSgd}), "--");
  EXPECT_EQ(uses({.type = Dense::kSgd, .momentum = 0.9}), "1-");
  EXPECT_EQ(uses({.type = Dense::kAdagrad, .momentum = 0.9}), "-2");
  EXPECT_EQ(uses({.type = Dense::kAdam}), "12");
  EXPECT_EQ(uses({.type = Dense::kAdamW}), "12");
}

/// One parameter in double, as the documentation of torch.optim defines the optimizers.
struct ExactParameter {
  void update(const DenseOptimizer& o, double g, double lr, double t) {
    if (o.type == Dense::kAdamW) p *= 1 - lr * o.weight_decay;
    if (o.type != Dense::kAdamW) g += o.weight_decay * p;
    if (o.type == Dense::kSgd) {
      m = o.momentum * m + g;
      p -= lr * m;
    } else if (o.type == Dense::kAdagrad) {
      v += g * g;
      p -= lr * g / (std::sqrt(v) + o.eps);
    } else {
      m = o.beta1 * m + (1 - o.beta1) * g;
      v = o.beta2 * v + (1 - o.beta2) * g * g;
      const double mean = m / (1 - std::pow(o.beta1, t)), square = v / (1 - std::pow(o.beta2, t));
      p -= lr * mean / (std::sqrt(square) + o.eps);
    }
  }
  double p = 0, m = 0, v = 0;
};

TEST(DenseUpdate, FollowsTheFormulasOverManySteps) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  for (const Dense type : {Dense::kSgd, Dense::kAdagrad, Dense::kAdam, Dense::kAdamW}) {
    for (const double weight_decay : {0.0, 0.05}) {
      for (const double momentum : {0.0, 0.8}) {
        const DenseOptimizer optimizer{
            .type = type, .momentum = momentum, .weight_decay = weight_decay, .eps = 1e-6};
        DenseValues values(std::vector<float>(37));
        std::vector<ExactParameter> exact(37);
        for (std::size_t i = 0; i < exact.size(); ++i) exact[i].p = values.p[i] = normal(random);
        for (int t = 1; t <= 20; ++t) {
          std::vector<float> g(37);
          for (std::size_t i = 0; i < g.size(); ++i) {
            g[i] = normal(random);
            exact[i].update(optimizer, 0.5 * static_cast<double>(g[i]), 0.03, t);
          }
          values.update(optimizer, g, 0.03, t, 0.5F);
        }
        for (std::size_t i = 0; i < exact.size(); ++i) {
          EXPECT_NEAR(values.p[i], exact[i].p, 2e-5) << static_cast<int>(type) << " " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace satrap
