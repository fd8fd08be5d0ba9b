#include <cmath>

#include <gtest/gtest.h>

#include "src/dense/ops.h"
#include "tests/dense/exact_derivatives.h"

namespace satrap::dense {
namespace {

TEST(MixtureOps, SoftmaxOfRows) {
  const float third = 1.0F / 3;
  Floats x = {0, 0, 0, 5000, 5000 + std::log(3.0F), -5000};
  softmax(matrix(x, 2));
  const Floats expected = {third, third, third, 0.25F, 0.75F, 0};
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], expected[i], 1e-4) << i;
  Floats one = {123};
  softmax(matrix(one, 1));
  EXPECT_EQ(one, (Floats{1}));
  softmax(Matrix());
}

TEST(MixtureOps, SoftmaxOfARowThatIsNotFiniteIsNan) {
  for (const float bad : {kNan, kInfinity}) {
    for (const std::size_t place : {0U, 2U}) {
      Floats x = {1, 2, 3};
      x[place] = bad;
      softmax(matrix(x, 1));
      EXPECT_TRUE(std::isnan(x[place])) << bad << " at " << place;
    }
  }
}

TEST(MixtureOps, GradientOfSoftmax) {
  const Floats z = {0.5F, -1, 2, 0, 1, -0.25F}, dy = {1, -2, 0.5F, 3, 0, -1};
  const auto loss = [&](Floats x) {
    softmax(matrix(x, 2));
    double sum = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += static_cast<double>(x[i] * dy[i]);
    return sum;
  };
  Floats y = z, d = dy;
  softmax(matrix(y, 2));
  softmax_backward(matrix(y, 2), matrix(d, 2));
  for (std::size_t i = 0; i < z.size(); ++i) {
    constexpr float kStep = 0.0078125F;
    Floats above = z, below = z;
    above[i] += kStep;
    below[i] -= kStep;
    EXPECT_NEAR(d[i], (loss(above) - loss(below)) / static_cast<double>(2 * kStep), 1e-4) << i;
  }
}

TEST(MixtureOps, MixWeighsVectors) {
  Floats weights = {2, 10, 0, 1}, vectors = {1, 2, 3, 4, 5, 6, 7, 8}, y(4, kNan);
  mix(matrix(weights, 2), matrix(vectors, 2), matrix(y, 2), /*add=*/false);
  EXPECT_EQ(y, (Floats{32, 44, 7, 8}));
  mix(matrix(weights, 2), matrix(vectors, 2), matrix(y, 2), /*add=*/true);
  EXPECT_EQ(y, (Floats{64, 88, 14, 16}));
}

TEST(MixtureOps, GradientsOfMix) {
  std::mt19937_64 random(1);
  constexpr std::int64_t kRows = 3, kVectors = 4;
  for (const std::int64_t width : {1, 5, 16, 35}) {
    Floats weights = whole(random, kRows * kVectors);
    Floats vectors = whole(random, static_cast<std::size_t>(kRows * kVectors * width));
    Floats dy = whole(random, static_cast<std::size_t>(kRows * width));
    const auto mixed = [&] {
      Floats y(dy.size());
      mix(matrix(weights, kRows), matrix(vectors, kRows), matrix(y, kRows), /*add=*/false);
      return y;
    };
    Floats dweights(weights.size(), kNan), dvectors(vectors.size(), 0.0F);
    mix_backward(matrix(weights, kRows), matrix(vectors, kRows), matrix(dy, kRows),
                 matrix(dweights, kRows), matrix(dvectors, kRows));
    EXPECT_EQ(dweights, derivatives(weights, mixed, dy));
    const Floats of_vectors = derivatives(vectors, mixed, dy);
    EXPECT_EQ(dvectors, of_vectors);
    mix_backward(matrix(weights, kRows), matrix(vectors, kRows), matrix(dy, kRows),
                 matrix(dweights, kRows), matrix(dvectors, kRows));
    for (std::size_t i = 0; i < dvectors.size(); ++i) EXPECT_EQ(dvectors[i], 2 * of_vectors[i]);
  }
}

}  // namespace
}  // namespace satrap::dense
