#include <gtest/gtest.h>

#include "src/dense/ops.h"
#include "tests/dense/exact_derivatives.h"

namespace satrap::dense {
namespace {

/// One batch normalisation of `rows` rows, with weight 2 and bias 10 for every column.
struct Normalized {
  Normalized(Floats values, std::int64_t rows)
      : x(std::move(values)),
        xhat(x.size()),
        invstd(x.size() / static_cast<std::size_t>(rows)),
        weight(invstd.size(), 2.0F),
        bias(invstd.size(), 10.0F),
        mean(invstd.size(), 5.0F),
        var(invstd.size(), 1.0F) {
    const Floats old_mean = mean, old_var = var;
    batch_norm(matrix(x, rows), {weight.data(), bias.data(), old_mean.data(), old_var.data()},
               matrix(xhat, rows), invstd.data(), mean.data(), var.data());
  }
  Floats x, xhat, invstd, weight, bias, mean, var;
};

TEST(BatchNormOps, BatchNormTakesTheBatchsMomentsAndKeepsRunningOnes) {
  const Normalized n({1, 100, 3, 100}, 2);  // means 2 and 100, variances 1 and 0
  EXPECT_FLOAT_EQ(n.invstd[0], 1 / std::sqrt(1 + 1e-5F));
  EXPECT_FLOAT_EQ(n.xhat[0], -n.invstd[0]);
  EXPECT_FLOAT_EQ(n.x[0], 10 - 2 * n.invstd[0]);
  EXPECT_FLOAT_EQ(n.x[2], 10 + 2 * n.invstd[0]);
  EXPECT_EQ(n.x[1], 10);
  EXPECT_FLOAT_EQ(n.mean[0], 0.9F * 5 + 0.1F * 2);
  EXPECT_FLOAT_EQ(n.var[0], 0.9F + 0.1F * 2);  // the unbiased variance is 2
  EXPECT_FLOAT_EQ(n.var[1], 0.9F);
}

TEST(BatchNormOps, BatchNormOfOneRowKeepsTheRunningVariance) {
  const Normalized n({7}, 1);
  EXPECT_EQ(n.x[0], 10);
  EXPECT_EQ(n.var[0], 1);
  EXPECT_FLOAT_EQ(n.mean[0], 0.9F * 5 + 0.1F * 7);
}

TEST(BatchNormOps, BatchNormInEvaluationUsesTheRunningMoments) {
  Floats x = {1, 3};
  const Floats weight = {2}, bias = {10}, mean = {1}, var = {4};
  batch_norm_eval(matrix(x, 2), {weight.data(), bias.data(), mean.data(), var.data()});
  EXPECT_EQ(x[0], 10);
  EXPECT_FLOAT_EQ(x[1], 10 + 2 * 2 / std::sqrt(4 + 1e-5F));
}

TEST(BatchNormOps, GradientsOfBatchNorm) {
  std::mt19937_64 random(1);
  constexpr std::int64_t kRows = 6, kCols = 19;
  const Normalized n(whole(random, kRows * kCols), kRows);
  const Floats dy = whole(random, kRows * kCols);
  Floats dx = dy, xhat = n.xhat, dweight(kCols, 1.0F), dbias(kCols, 1.0F);
  batch_norm_backward(matrix(xhat, kRows), n.invstd.data(), n.weight.data(), matrix(dx, kRows),
                      dweight.data(), dbias.data(), true);
  for (std::size_t c = 0; c < kCols; ++c) {
    double sum = 0.0, product = 0.0;  // of dy, and of dy and xhat
    for (std::size_t i = c; i < dy.size(); i += kCols) {
      sum += static_cast<double>(dy[i]);
      product += static_cast<double>(dy[i]) * static_cast<double>(xhat[i]);
    }
    EXPECT_NEAR(dbias[c], 1.0 + sum, 1e-4);
    EXPECT_NEAR(dweight[c], 1.0 + product, 1e-4);
    for (std::size_t i = c; i < dy.size(); i += kCols) {
      const double rest =
          static_cast<double>(dy[i]) - sum / kRows - static_cast<double>(xhat[i]) * product / kRows;
      EXPECT_NEAR(dx[i], 2.0 * static_cast<double>(n.invstd[c]) * rest, 1e-4);
    }
  }
}

}  // namespace
}  // namespace satrap::dense
