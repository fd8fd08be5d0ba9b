#include "src/dense/losses.h"

#include <cmath>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "tests/dense/exact_derivatives.h"

namespace satrap::dense {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

InputShape shape_with(std::vector<job::Loss> losses,
                      std::int64_t num_classes = 0,
                      float shift = 0) {
  InputShape shape;
  shape.label_weights.assign(losses.size(), 1.0F);
  shape.losses = std::move(losses);
  shape.num_classes = num_classes;
  shape.loss_shift = shift;
  return shape;
}

const Losses kTwoBce(shape_with({job::Loss::kBce, job::Loss::kBce}));

TEST(Losses, ProbabilitiesAreSigmoidsWhateverTheLogits) {
  const Floats logits = {0, 1000, -1000, kNan};
  Floats p(4);
  kTwoBce.predict(matrix(logits, 2), p.data());
  EXPECT_EQ(Floats(p.begin(), p.begin() + 3), (Floats{0.5F, 1, 0}));
  EXPECT_TRUE(std::isnan(p[3]));
}

TEST(Losses, CrossEntropyIsWeightedByColumn) {
  Floats logits = {0, 0, 1000, -1000}, p(4), dlogits(4, kNan);
  const Floats labels = {1, 0, 0, 1}, weights = {1, 2};
  const double loss =
      kTwoBce.compute(matrix(logits, 2), labels.data(), ConstMatrix(weights.data(), 2, 2, 0), 0.5F,
                      p.data(), matrix(dlogits, 2));
  EXPECT_DOUBLE_EQ(loss, 3 * std::log(2.0) + 1000 + 2 * 1000);
  EXPECT_EQ(p, (Floats{0.5F, 0.5F, 1, 0}));
  EXPECT_EQ(dlogits, (Floats{-0.25F, 0.5F, 0.5F, -1}));
}

TEST(Losses, CrossEntropyIsWeightedByExampleAndLabel) {
  Floats logits = {0, 3, 1000, -2}, p(4), dlogits(4, kNan);
  const Floats weights = {0.5F, 0, 2, 0};
  const Floats labels = {1, 1, 0, kNan};  // a missing one has no weight
  const double loss = kTwoBce.compute(matrix(logits, 2), labels.data(), matrix(weights, 2), 0.5F,
                                      p.data(), matrix(dlogits, 2));
  EXPECT_DOUBLE_EQ(loss, 0.5 * std::log(2.0) + 2 * 1000);
  EXPECT_EQ(dlogits, (Floats{-0.125F, 0, 1, 0}));
  EXPECT_FLOAT_EQ(p[3], 1 / (1 + std::exp(2.0F)));
}

TEST(Losses, CrossEntropyMayBeOfOtherLogitsThanThePredictions) {
  Floats logits = {-1, 2}, moved = {0.5F, 3.5F}, p(2), dlogits(2), p_moved(2), dmoved(2);
  const Floats labels = {1, 0}, weights = {1};
  const ConstMatrix ones(weights.data(), 2, 1, 0);
  const double loss =
      Losses(shape_with({job::Loss::kBce}, 0, 1.5F))
          .compute(matrix(logits, 2), labels.data(), ones, 0.5F, p.data(), matrix(dlogits, 2));
  EXPECT_EQ(loss, Losses(shape_with({job::Loss::kBce}))
                      .compute(matrix(moved, 2), labels.data(), ones, 0.5F, p_moved.data(),
                               matrix(dmoved, 2)));
  EXPECT_EQ(dlogits, dmoved);
  EXPECT_FLOAT_EQ(p[0], 1 / (1 + std::exp(1.0F)));
  EXPECT_FLOAT_EQ(p[1], 1 / (1 + std::exp(-2.0F)));
}

TEST(Losses, OfNanAreNan) {
  for (const job::Loss loss : {job::Loss::kBce, job::Loss::kMse}) {
    Floats logits = {0, kNan}, p(2), dlogits(2);
    const Floats labels = {1, 1}, weights = {1};
    EXPECT_TRUE(std::isnan(Losses(shape_with({loss}))
                               .compute(matrix(logits, 2), labels.data(),
                                        ConstMatrix(weights.data(), 2, 1, 0), 1, p.data(),
                                        matrix(dlogits, 2))));
  }
  for (const std::size_t place : {0U, 1U, 2U}) {
    Floats logits = {0, 1, 2}, p(3), dlogits(3);
    logits[place] = kNan;
    const Floats labels = {1}, weights = {1};
    EXPECT_TRUE(std::isnan(Losses(shape_with({job::Loss::kSoftmax}, 3))
                               .compute(matrix(logits, 1), labels.data(), matrix(weights, 1), 1,
                                        p.data(), matrix(dlogits, 1))));
  }
}

TEST(Losses, OfNumbersAreSquares) {
  Floats logits = {1.5F, -2, 4}, p(3), dlogits(3, kNan);
  const Floats labels = {1, 3, kNan}, weights = {1, 2, 0};
  const Losses losses(shape_with({job::Loss::kMse}));
  EXPECT_EQ(losses.compute(matrix(logits, 3), labels.data(), matrix(weights, 3), 0.25F, p.data(),
                           matrix(dlogits, 3)),
            0.25 + 2 * 25);
  EXPECT_EQ(p, logits) << "the values are the logits";
  EXPECT_EQ(dlogits, (Floats{0.25F, -5, 0}));
}

TEST(Losses, StandBesideEachOther) {
  const Losses mixed(shape_with({job::Loss::kMse, job::Loss::kBce}));
  Floats logits = {3, 0}, p(2), dlogits(2);
  const Floats labels = {1, 1}, weights = {1, 1};
  EXPECT_DOUBLE_EQ(mixed.compute(matrix(logits, 1), labels.data(), matrix(weights, 1), 1, p.data(),
                                 matrix(dlogits, 1)),
                   4 + std::log(2.0));
  EXPECT_EQ(p, (Floats{3, 0.5F}));
  EXPECT_EQ(dlogits, (Floats{4, -0.5F}));
  Floats predicted(2);
  mixed.predict(matrix(logits, 1), predicted.data());
  EXPECT_EQ(predicted, p);
}

TEST(Losses, OfClassesAreCrossEntropiesOfTheSoftmax) {
  const Losses losses(shape_with({job::Loss::kSoftmax}, 3));
  // Powers 1, 2, 1 and a row of which the first takes all.
  const auto two = static_cast<float>(std::log(2.0));
  Floats logits = {0, two, 0, 1000, -1000, 0}, p(6), dlogits(6, kNan);
  const Floats labels = {1, 2}, weights = {2, 1};
  const double loss = losses.compute(matrix(logits, 2), labels.data(), matrix(weights, 2), 0.5F,
                                     p.data(), matrix(dlogits, 2));
  EXPECT_NEAR(loss, 2 * std::log(2.0) + 1000, 1e-6);
  EXPECT_THAT(p, testing::Pointwise(testing::FloatNear(1e-6F), Floats{.25F, .5F, .25F, 1, 0, 0}));
  EXPECT_THAT(dlogits, testing::Pointwise(testing::FloatNear(1e-6F),
                                          Floats{.25F, -.5F, .25F, .5F, 0, -.5F}));
  Floats predicted(6);
  losses.predict(matrix(logits, 2), predicted.data());
  EXPECT_EQ(predicted, p);
}

TEST(Losses, OfAMissingClassAreNothing) {
  Floats logits = {1, 2}, p(2), dlogits(2, kNan);
  const Floats labels = {kNan}, weights = {0};
  const Losses losses(shape_with({job::Loss::kSoftmax}, 2));
  EXPECT_EQ(losses.compute(matrix(logits, 1), labels.data(), matrix(weights, 1), 1, p.data(),
                           matrix(dlogits, 1)),
            0.0);
  EXPECT_EQ(dlogits, (Floats{0, 0}));
}

TEST(Losses, RefuseAClassThatIsNone) {
  Floats logits = {1, 2}, p(2), dlogits(2);
  const Losses losses(shape_with({job::Loss::kSoftmax}, 2));
  for (const float label : {2.0F, -1.0F}) {
    const Floats labels = {label}, weights = {1};
    EXPECT_THROW(losses.compute(matrix(logits, 1), labels.data(), matrix(weights, 1), 1, p.data(),
                                matrix(dlogits, 1)),
                 Error);
  }
}

/// Two classes are a label of 0 and 1 whose logit is the difference.
TEST(Losses, OfTwoClassesAreThoseOfTheirDifference) {
  const RandomStream random{3};
  const Losses classes(shape_with({job::Loss::kSoftmax}, 2)), binary(shape_with({job::Loss::kBce}));
  for (std::uint64_t n = 0; n < 100; ++n) {
    const float a = 8 * random.uniform(3 * n) - 4, b = 8 * random.uniform(3 * n + 1) - 4;
    const Floats labels = {n % 2 == 0 ? 1.0F : 0.0F}, weights = {1.5F};
    Floats two = {a, b}, one = {b - a}, p_two(2), p_one(1), d_two(2), d_one(1);
    const double loss = classes.compute(matrix(two, 1), labels.data(), matrix(weights, 1), 0.5F,
                                        p_two.data(), matrix(d_two, 1));
    EXPECT_NEAR(loss,
                binary.compute(matrix(one, 1), labels.data(), matrix(weights, 1), 0.5F,
                               p_one.data(), matrix(d_one, 1)),
                1e-6);
    EXPECT_NEAR(p_two[1], p_one[0], 1e-6F);
    EXPECT_NEAR(d_two[1], d_one[0], 1e-6F);
    EXPECT_NEAR(d_two[0], -d_one[0], 1e-6F);
  }
}

/// By the differences of the loss, of random cases of each kind.
TEST(Losses, GradientsAreSlopes) {
  const RandomStream random{7};
  std::uint64_t draws = 0;
  const auto draw = [&] { return 4 * random.uniform(draws++) - 2; };
  for (const auto& [losses_of, num_classes] :
       {std::pair{std::vector{job::Loss::kMse}, 0}, std::pair{std::vector{job::Loss::kBce}, 0},
        std::pair{std::vector{job::Loss::kBce, job::Loss::kMse}, 0},
        std::pair{std::vector{job::Loss::kSoftmax}, 4}}) {
    const InputShape shape = shape_with(losses_of, num_classes);
    const Losses losses(shape);
    constexpr std::int64_t kRows = 5;
    const auto num_outputs = static_cast<std::size_t>(shape.num_outputs() * kRows);
    Floats logits(num_outputs), p(num_outputs), dlogits(num_outputs);
    Floats labels(losses_of.size() * kRows), weights(labels.size());
    for (float& logit : logits) logit = draw();
    for (std::size_t i = 0; i < labels.size(); ++i) {
      labels[i] = num_classes > 0                                      ? static_cast<float>(i % 4)
                  : losses_of[i % losses_of.size()] == job::Loss::kMse ? draw()
                                                                       : static_cast<float>(i % 2);
      weights[i] = draw() + 2;
    }
    const auto loss_of = [&](const Floats& at) {
      Floats other_p(num_outputs), other_d(num_outputs);
      return losses.compute(matrix(at, kRows), labels.data(), matrix(weights, kRows), 1.0F,
                            other_p.data(), matrix(other_d, kRows));
    };
    losses.compute(matrix(logits, kRows), labels.data(), matrix(weights, kRows), 1.0F, p.data(),
                   matrix(dlogits, kRows));
    for (std::size_t i = 0; i < num_outputs; ++i) {
      constexpr float kStep = 1.0F / 64;
      Floats up = logits, down = logits;
      up[i] += kStep;
      down[i] -= kStep;
      const double slope = (loss_of(up) - loss_of(down)) / (2.0 * static_cast<double>(kStep));
      EXPECT_NEAR(dlogits[i], slope, 1e-3) << i;
    }
  }
}

TEST(Losses, BeginWithTheMeanOfEachLabel) {
  const Losses mixed(shape_with({job::Loss::kMse, job::Loss::kBce}));
  EXPECT_THAT(mixed.constants_of(std::vector{-7.5, 0.75}),
              ElementsAre(-7.5, DoubleNear(std::log(3.0), 1e-12)));
  const Losses classes(shape_with({job::Loss::kSoftmax}, 2));
  EXPECT_THAT(classes.constants_of(std::vector{0.25, 0.75}),
              ElementsAre(DoubleNear(std::log(0.25), 1e-12), DoubleNear(std::log(0.75), 1e-12)));
  EXPECT_THROW(mixed.constants_of(std::vector{0.5}), Error);
  EXPECT_THROW(mixed.constants_of(std::vector{0.5, 1.0}), Error);
}

TEST(Losses, RefuseClassesBesideOtherLabels) {
  EXPECT_THROW(Losses(shape_with({job::Loss::kSoftmax, job::Loss::kBce}, 3)), Error);
  EXPECT_THROW(Losses(shape_with({job::Loss::kSoftmax})), Error);
  EXPECT_THROW(Losses(shape_with({job::Loss::kMse}, 3)), Error);
}

}  // namespace
}  // namespace satrap::dense
