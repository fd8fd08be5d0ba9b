#include "src/dense/fp32_product.h"

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/hash.h"

namespace satrap::dense {
namespace {

constexpr float kUntouched = 1234.5F;

/// A matrix with a stride larger than its rows, at an address that suits no vector.
class Numbers {
 public:
  Numbers(std::int64_t rows, std::int64_t cols, std::int64_t gap, std::uint64_t seed)
      : rows_(rows),
        cols_(cols),
        stride_(cols + gap),
        values_(static_cast<std::size_t>(1 + rows * stride_), kUntouched) {
    const RandomStream random{seed};
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) {
        view().row(r)[c] = random.uniform(static_cast<std::uint64_t>(r * cols + c)) - 0.5F;
      }
    }
  }
  Matrix view() { return {values_.data() + 1, rows_, cols_, stride_}; }

  bool kept_its_gaps() {
    for (std::int64_t r = 0; r < rows_; ++r) {
      for (std::int64_t c = cols_; c < stride_; ++c) {
        if (view().row(r)[c] != kUntouched) return false;
      }
    }
    return values_[0] == kUntouched;
  }

 private:
  std::int64_t rows_, cols_, stride_;
  std::vector<float> values_;
};

struct Shape {
  std::int64_t rows, cols, depth;
};

/// [rows, cols, depth], then: is a transposed, is b, is the product added, bias and ReLU.
using Case = std::tuple<Shape, bool, bool, bool, bool>;

class Product : public testing::TestWithParam<Case> {};

TEST_P(Product, IsTheDefinition) {
  const auto [shape, transpose_a, transpose_b, accumulate, ends] = GetParam();
  const auto [rows, cols, depth] = shape;
  Numbers a(transpose_a ? depth : rows, transpose_a ? rows : depth, 3, 1);
  Numbers b(transpose_b ? cols : depth, transpose_b ? depth : cols, 5, 2);
  Numbers c(rows, cols, 7, 3), before(rows, cols, 7, 3), bias(1, cols, 0, 4);
  Fp32Product product;
  product.multiply(
      a.view(), transpose_a, b.view(), transpose_b, c.view(),
      {.accumulate = accumulate, .bias = ends ? bias.view().data : nullptr, .relu = ends});
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) {
      double sum = accumulate ? static_cast<double>(before.view().row(i)[j]) : 0.0;
      for (std::int64_t k = 0; k < depth; ++k) {
        sum += static_cast<double>(transpose_a ? a.view().row(k)[i] : a.view().row(i)[k]) *
               static_cast<double>(transpose_b ? b.view().row(j)[k] : b.view().row(k)[j]);
      }
      if (ends) sum = std::max(0.0, sum + static_cast<double>(bias.view().data[j]));
      ASSERT_NEAR(c.view().row(i)[j], sum, 1e-6 * std::sqrt(static_cast<double>(depth + 1)))
          << i << ", " << j;
    }
  }
  EXPECT_TRUE(c.kept_its_gaps());
}

// No value, one, one tile and its neighbours in rows and columns, one panel and its neighbours in
// depth.
INSTANTIATE_TEST_SUITE_P(Shapes,
                         Product,
                         testing::Combine(testing::Values(Shape{0, 5, 3},
                                                          Shape{5, 0, 3},
                                                          Shape{5, 3, 0},
                                                          Shape{1, 1, 1},
                                                          Shape{6, 64, 20},
                                                          Shape{5, 63, 17},
                                                          Shape{7, 65, 13},
                                                          Shape{13, 16, 512},
                                                          Shape{8, 33, 513},
                                                          Shape{20, 49, 1100},
                                                          Shape{3, 367, 40},
                                                          Shape{64, 13, 33}),
                                          testing::Bool(),
                                          testing::Bool(),
                                          testing::Bool(),
                                          testing::Bool()));

TEST(Product, OfAnyPartOfTheRowsHasTheBitsOfTheWhole) {
  Numbers a(50, 700, 0, 1), b(90, 700, 0, 2), whole(50, 90, 0, 3), part(50, 90, 0, 4);
  Fp32Product product;
  product.multiply(a.view(), false, b.view(), true, whole.view(), {});
  for (std::int64_t first = 0, count = 1; first < 50; first += count, ++count) {
    count = std::min<std::int64_t>(count, 50 - first);
    product.multiply(a.view().row_range(first, count), false, b.view(), true,
                     part.view().row_range(first, count), {});
  }
  for (std::int64_t i = 0; i < 50; ++i) {
    for (std::int64_t j = 0; j < 90; ++j) {
      ASSERT_EQ(part.view().row(i)[j], whole.view().row(i)[j]) << i << ", " << j;
    }
  }
}

TEST(Product, WhatIsNoNumberStaysSo) {
  Numbers a(2, 2, 0, 1), b(2, 2, 0, 2), c(2, 2, 0, 3), bias(1, 2, 0, 4);
  a.view().row(1)[0] = std::numeric_limits<float>::quiet_NaN();
  Fp32Product().multiply(a.view(), false, b.view(), false, c.view(),
                         {.bias = bias.view().data, .relu = true});
  for (const std::int64_t j : {0, 1}) {
    EXPECT_TRUE(std::isfinite(c.view().row(0)[j]));
    EXPECT_TRUE(std::isnan(c.view().row(1)[j]));
  }
}

}  // namespace
}  // namespace satrap::dense
