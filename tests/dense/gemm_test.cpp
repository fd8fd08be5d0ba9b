#include "src/dense/gemm.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/dense/exact_derivatives.h"

namespace satrap::dense {
namespace {

/// A matrix of small whole numbers, which bf16 and any order of sums leave exact.
struct Whole {
  Whole(std::int64_t rows, std::int64_t cols, std::mt19937_64& random)
      : numbers(static_cast<std::size_t>(rows * cols)), view(numbers.data(), rows, cols) {
    for (float& v : numbers) v = static_cast<float>(random() % 7) - 3.0F;
  }
  Floats numbers;
  Matrix view;
};

/// a b by definition; both transposed as said.
Floats plain_product(ConstMatrix a, bool transpose_a, ConstMatrix b, bool transpose_b) {
  const std::int64_t rows = transpose_a ? a.cols : a.rows, inner = transpose_a ? a.rows : a.cols;
  const std::int64_t cols = transpose_b ? b.rows : b.cols;
  Floats product;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      float sum = 0.0F;
      for (std::int64_t k = 0; k < inner; ++k) {
        sum +=
            (transpose_a ? a.row(k)[r] : a.row(r)[k]) * (transpose_b ? b.row(c)[k] : b.row(k)[c]);
      }
      product.push_back(sum);
    }
  }
  return product;
}

class GemmTest : public testing::TestWithParam<Precision> {
 protected:
  Gemm gemm_{GetParam()};
  std::mt19937_64 random_{1};
};

TEST_P(GemmTest, ProductsOfALayerAreThoseOfTheDefinition) {
  ThreadPool pool(3);
  const std::int64_t shapes[][3] = {{1, 1, 1}, {3, 5, 2}, {17, 16, 33}, {255, 3, 40}, {600, 20, 9}};
  for (const bool in_parallel : {false, true}) {
    gemm_.set_pool(in_parallel ? &pool : nullptr);
    for (const auto& [n, k, m] : shapes) {
      const Whole x(n, k, random_), w(m, k, random_), dy(n, m, random_);
      Whole y(n, m, random_), dx(n, k, random_), dw(m, k, random_);
      gemm_.multiply_nt(x.view, w.view, y.view);
      EXPECT_EQ(y.numbers, plain_product(x.view, false, w.view, true));
      gemm_.multiply_nn(dy.view, w.view, dx.view);
      EXPECT_EQ(dx.numbers, plain_product(dy.view, false, w.view, false));
      if (GetParam() == Precision::kFp32 || n < 100) {  // sums of more may not fit bf16
        gemm_.multiply_tn(dy.view, x.view, dw.view, false);
        EXPECT_EQ(dw.numbers, plain_product(dy.view, true, x.view, false));
      }
    }
  }
}

TEST_P(GemmTest, AGradientIsAddedIfWanted) {
  const Whole dy(4, 2, random_), x(4, 3, random_);
  const Floats product = plain_product(dy.view, true, x.view, false);
  Floats dw(6, 100.0F);
  gemm_.multiply_tn(dy.view, x.view, {dw.data(), 2, 3}, true);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(dw[i], 100.0F + product[i]);
  gemm_.multiply_tn(dy.view, x.view, {dw.data(), 2, 3}, false);
  EXPECT_EQ(dw, product);
}

TEST_P(GemmTest, BiasAndReluComeAfterTheSum) {
  Floats x = {1, 2}, w = {1, 1, -1, -1}, bias = {10, 1}, y(2);
  gemm_.multiply_nt({x.data(), 1, 2}, {w.data(), 2, 2}, {y.data(), 1, 2}, {.bias = bias.data()});
  EXPECT_EQ(y, (Floats{13, -2}));
  gemm_.multiply_nt({x.data(), 1, 2}, {w.data(), 2, 2}, {y.data(), 1, 2},
                    {.bias = bias.data(), .relu = true});
  EXPECT_EQ(y, (Floats{13, 0}));
}

TEST_P(GemmTest, OfNoRowsThereIsNothing) {
  ThreadPool pool(2);
  const Floats w = {1, 2};
  Floats dw = {7, 7};
  for (ThreadPool* const p : {static_cast<ThreadPool*>(nullptr), &pool}) {
    gemm_.set_pool(p);
    gemm_.multiply_nt({nullptr, 0, 2}, {w.data(), 1, 2}, {nullptr, 0, 1});
    gemm_.multiply_tn({nullptr, 0, 1}, {nullptr, 0, 2}, {dw.data(), 1, 2}, true);
    EXPECT_EQ(dw, (Floats{7, 7}));
  }
  gemm_.multiply_tn({nullptr, 0, 1}, {nullptr, 0, 2}, {dw.data(), 1, 2}, false);
  EXPECT_EQ(dw, (Floats{0, 0}));
}

TEST_P(GemmTest, ColumnsOfALargerMatrixAreLeftAlone) {
  Floats x = {1, 2, 9, 3, 4, 9}, w = {1, 1}, y = {-1, -1, -1, -1};
  gemm_.multiply_nt({x.data(), 2, 2, 3}, {w.data(), 1, 2}, {y.data(), 2, 1, 2});
  EXPECT_EQ(y, (Floats{3, -1, 7, -1}));
}

TEST_P(GemmTest, ShapesThatDoNotFitAreABug) {
  Floats m(12);
  const auto shaped = [&](std::int64_t rows, std::int64_t cols) {
    return Matrix(m.data(), rows, cols);
  };
  EXPECT_THROW(gemm_.multiply_nt(shaped(2, 3), shaped(2, 4), shaped(2, 2)), Error);
  EXPECT_THROW(gemm_.multiply_nn(shaped(2, 3), shaped(2, 3), shaped(2, 3)), Error);
  EXPECT_THROW(gemm_.multiply_tn(shaped(2, 3), shaped(3, 2), shaped(3, 2), false), Error);
  EXPECT_THROW(gemm_.multiply_nt(shaped(2, 3), shaped(2, 3), shaped(2, 2), {.relu = true}), Error);
}

INSTANTIATE_TEST_SUITE_P(Precisions,
                         GemmTest,
                         testing::Values(Precision::kFp32, Precision::kBf16),
                         [](const auto& precision) {
                           return precision.param == Precision::kFp32 ? "Fp32" : "Bf16";
                         });

TEST(Gemm, Bf16RoundsOperands) {
  Gemm gemm(Precision::kBf16);
  const float x = 1.0F + 0x1p-9F, one = 1.0F, w[] = {256.0F, 1.0F}, pair[] = {1.0F, 1.0F};
  float y = 0.0F;
  gemm.multiply_nt({&x, 1, 1}, {&one, 1, 1}, {&y, 1, 1});
  EXPECT_EQ(y, 1.0F);
  gemm.multiply_nt({pair, 1, 2}, {w, 1, 2}, {&y, 1, 1});
  // 257 has nine bits: libtorch rounds the product too, a tie to the even one.
  EXPECT_EQ(y, bf16_tiles(inspect_cpu()) == nullptr ? 256.0F : 257.0F);
}

TEST(Gemm, ResultsDoNotDependOnThreads) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  constexpr std::int64_t kRows = 700, kInner = 65, kCols = 30;
  Floats x(kRows * kInner), w(kCols * kInner), alone(kRows * kCols), shared(kRows * kCols);
  for (float& v : x) v = normal(random);
  for (float& v : w) v = normal(random);
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const auto multiply = [&](std::int64_t num_threads, Floats& y) {
      ThreadPool pool(num_threads);
      Gemm gemm(precision);
      gemm.set_pool(&pool);
      gemm.multiply_nt({x.data(), kRows, kInner}, {w.data(), kCols, kInner},
                       {y.data(), kRows, kCols});
    };
    multiply(1, alone);
    multiply(3, shared);
    EXPECT_EQ(alone, shared);
    if (precision == Precision::kBf16) continue;  // its library may divide the rows as it likes
    Gemm(precision).multiply_nt({x.data(), kRows, kInner}, {w.data(), kCols, kInner},
                                {alone.data(), kRows, kCols});
    EXPECT_EQ(alone, shared);
  }
}

}  // namespace
}  // namespace satrap::dense
