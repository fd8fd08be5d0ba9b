#include "src/dense/ops.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/dense/exact_derivatives.h"

namespace satrap::dense {
namespace {

TEST(DenseOps, BiasIsAddedPerColumnAndNanStays) {
  Floats y = {1, -5, kNan, 2};
  const Floats bias = {-3, 3};
  add_bias(matrix(y, 2), bias.data(), false);
  EXPECT_EQ(y[0], -2);
  EXPECT_EQ(y[1], -2);
  add_bias(matrix(y, 2), bias.data(), true);
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], 1);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], 8);
}

TEST(DenseOps, ReluPassesGradientsWhereItsOutputIsPositive) {
  Floats y = {-1, 0, 2, kNan};
  relu(matrix(y, 2));
  EXPECT_EQ(Floats(y.begin(), y.begin() + 3), (Floats{0, 0, 2}));
  EXPECT_TRUE(std::isnan(y[3]));
  Floats dy = {5, 6, 7, 8};
  relu_backward(matrix(y, 2), matrix(dy, 2));
  EXPECT_EQ(dy, (Floats{0, 0, 7, 8}));
}

TEST(DenseOps, ColumnsAreSummedOrAdded) {
  Floats dy = {1, 2, 3, 4}, db = {100, 100};
  sum_columns(matrix(dy, 2), db.data(), true);
  EXPECT_EQ(db, (Floats{104, 106}));
  sum_columns(matrix(dy, 2), db.data(), false);
  EXPECT_EQ(db, (Floats{4, 6}));
  sum_columns(Matrix(nullptr, 0, 2), db.data(), false);
  EXPECT_EQ(db, (Floats{0, 0}));
}

TEST(DenseOps, ReluAndSumInOneSweepAreTheTwo) {
  std::mt19937_64 random(1);
  Floats y = whole(random, 6 * 37), dy = whole(random, 6 * 37), dy_apart = dy;
  Floats db(37, 1.0F), db_apart = db;
  for (const bool accumulate : {true, false}) {
    relu_backward(matrix(y, 6), matrix(dy_apart, 6));
    sum_columns(matrix(dy_apart, 6), db_apart.data(), accumulate);
    relu_backward_sum_columns(matrix(y, 6), matrix(dy, 6), db.data(), accumulate);
    EXPECT_EQ(dy, dy_apart);
    EXPECT_EQ(db, db_apart);
  }
}

TEST(DenseOps, DropoutScalesWhatItKeeps) {
  Floats y(100 * 100, 3.0F);
  dropout(matrix(y, 100), 0.25, 1, 0);
  const auto kept = std::count(y.begin(), y.end(), 4.0F);
  EXPECT_EQ(std::count(y.begin(), y.end(), 0.0F), 10000 - kept);
  EXPECT_NEAR(static_cast<double>(kept), 7500, 4 * 43.3);  // four standard deviations
  Floats all(10, 3.0F);
  dropout(matrix(all, 1), 0.0, 1, 0);
  EXPECT_EQ(all, Floats(10, 3.0F));
}

TEST(DenseOps, DropoutFollowsFromSeedRowNumberAndColumn) {
  const auto dropped = [](std::uint64_t seed, std::int64_t first, std::int64_t rows) {
    Floats y(static_cast<std::size_t>(rows * 50), 1.0F);
    dropout(matrix(y, rows), 0.5, seed, first);
    return y;
  };
  const Floats both = dropped(1, 10, 2);
  EXPECT_EQ(Floats(both.begin() + 50, both.end()), dropped(1, 11, 1));
  EXPECT_NE(Floats(both.begin(), both.begin() + 50), dropped(1, 11, 1));
  EXPECT_NE(dropped(2, 10, 2), both);
}

TEST(DenseOps, ALayerOfOneOutputIsADotProduct) {
  Floats x = {1, 2, 3, 4, 5, 6}, w = {1, 0, -1}, y = {100, 200};
  const float bias = 10;
  dot_rows(matrix(x, 2), w.data(), &bias, matrix(y, 2), true);
  EXPECT_EQ(y, (Floats{108, 208}));
  dot_rows(matrix(x, 2), w.data(), nullptr, matrix(y, 2), false);
  EXPECT_EQ(y, (Floats{-2, -2}));
}

TEST(DenseOps, GradientsOfALayerOfOneOutput) {
  Floats x = {1, 2, 3, 4}, w = {5, 6}, dy = {1, 10}, dx(4), dw = {100, 100};
  float db = 100;
  dot_rows_backward(matrix(x, 2), w.data(), matrix(dy, 2), matrix(dx, 2), dw.data(), &db, true);
  EXPECT_EQ(dx, (Floats{5, 6, 50, 60}));
  EXPECT_EQ(dw, (Floats{131, 142}));
  EXPECT_EQ(db, 111);
  dot_rows_backward(matrix(x, 2), w.data(), matrix(dy, 2), {}, dw.data(), nullptr, false);
  EXPECT_EQ(dw, (Floats{31, 42}));
}

TEST(DenseOps, PartsOfALargerMatrixAreFilledCopiedAddedAndScaled) {
  Floats large = {1, 2, 3, 4, 5, 6}, small = {10, 20, 30, 40};
  const Matrix part(large.data() + 1, 2, 2, 3);
  add(matrix(small, 2), part);
  EXPECT_EQ(large, (Floats{1, 12, 23, 4, 35, 46}));
  copy(part, matrix(small, 2));
  EXPECT_EQ(small, (Floats{12, 23, 35, 46}));
  scale(part, 2);
  EXPECT_EQ(large, (Floats{1, 24, 46, 4, 70, 92}));
  fill(part, 7);
  EXPECT_EQ(large, (Floats{1, 7, 7, 4, 7, 7}));
}

TEST(DenseOps, RowsAreSummedAndTheirGradientGoesToEveryColumn) {
  Floats x = {1, 2, 3, 4, 5, 6}, y = {100, 200}, dx(6);
  sum_row(matrix(x, 2), matrix(y, 2), true);
  EXPECT_EQ(y, (Floats{106, 215}));
  sum_row(matrix(x, 2), matrix(y, 2), false);
  EXPECT_EQ(y, (Floats{6, 15}));
  sum_row_backward(matrix(y, 2), matrix(dx, 2));
  EXPECT_EQ(dx, (Floats{6, 6, 6, 15, 15, 15}));
}

TEST(DenseOps, TheWidePartIsWeightsAndProductsOfPairs) {
  // Two fields of weight and two factors: <[1, 2], [3, 4]> = 11.
  Floats pooled = {100, 1, 2, 1000, 3, 4}, factors(4), y = {7};
  fm(matrix(pooled, 1), 3, true, matrix(factors, 1), matrix(y, 1));
  EXPECT_EQ(y[0], 7 + 1100 + 11);
  EXPECT_EQ(factors, (Floats{1, 2, 3, 4}));
  y = {7};
  fm(matrix(pooled, 1), 3, false, matrix(factors, 1), matrix(y, 1));
  EXPECT_EQ(y[0], 7 + 1100);
}

TEST(DenseOps, GradientsOfTheWidePart) {
  std::mt19937_64 random(1);
  constexpr std::int64_t kRows = 2, kFields = 3;
  for (const std::int64_t width : {2, 5, 21}) {
    for (const bool products : {false, true}) {
      Floats pooled = whole(random, static_cast<std::size_t>(kRows * kFields * width));
      Floats factors(static_cast<std::size_t>(kRows * kFields * (width - 1)));
      Floats dy = whole(random, kRows), dpooled(pooled.size(), kNan);
      Floats dfactors = whole(random, factors.size());
      const auto forward = [&] {
        Floats y(kRows);
        fm(matrix(pooled, kRows), width, products, matrix(factors, kRows), matrix(y, kRows));
        return y;
      };
      const auto both = [&] {
        Floats out = forward();
        out.insert(out.end(), factors.begin(), factors.end());
        return out;
      };
      fm_backward(matrix(pooled, kRows), width, products, {}, matrix(dy, kRows),
                  matrix(dpooled, kRows));
      EXPECT_EQ(dpooled, derivatives(pooled, forward, dy));
      fm_backward(matrix(pooled, kRows), width, products, matrix(dfactors, kRows),
                  matrix(dy, kRows), matrix(dpooled, kRows));
      Floats dboth = dy;
      dboth.insert(dboth.end(), dfactors.begin(), dfactors.end());
      EXPECT_EQ(dpooled, derivatives(pooled, both, dboth));
    }
  }
}

TEST(DenseOps, CrossMultipliesAndAdds) {
  Floats x0 = {2, 3}, x = {10, 20}, u = {1, 1}, next(2), d = {1, 10}, dx0 = {100, 100}, du(2);
  const Floats bias = {4, 5};
  cross(matrix(x0, 1), matrix(x, 1), bias.data(), matrix(u, 1), matrix(next, 1));
  EXPECT_EQ(u, (Floats{5, 6}));
  EXPECT_EQ(next, (Floats{20, 38}));
  cross_backward(matrix(x0, 1), matrix(u, 1), matrix(d, 1), matrix(dx0, 1), matrix(du, 1));
  EXPECT_EQ(dx0, (Floats{105, 160}));
  EXPECT_EQ(du, (Floats{2, 30}));
}

TEST(DenseOps, OneValueThatIsNotFiniteIsFoundAnywhere) {
  Floats x(3 * 37, std::numeric_limits<float>::max());
  EXPECT_TRUE(all_finite(matrix(x, 3)));
  EXPECT_TRUE(all_finite({}));
  for (const std::size_t place : {0U, 36U, 37U, 110U}) {
    for (const float odd : {kNan, kInfinity, -kInfinity}) {
      Floats broken = x;
      broken[place] = odd;
      EXPECT_FALSE(all_finite(matrix(broken, 3)));
      EXPECT_TRUE(all_finite(Matrix(broken.data(), 3, 37).columns(1, 35)));  // beside it
    }
  }
}

}  // namespace
}  // namespace satrap::dense
