#include "src/dense/tiled_product.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/half.h"
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

// The tiles that this CPU can run, and nothing where it cannot.
std::vector<const ProductTiles*> all_tiles() {
  std::vector<const ProductTiles*> tiles{&kBaseTiles};
#if defined(__x86_64__)
  const Cpu cpu = inspect_cpu();
  if (cpu.has("avx2")) tiles.push_back(&kAvx2Tiles);
  if (&fp32_tiles(cpu) == &kAvx512Tiles) tiles.push_back(&kAvx512Tiles);
  if (cpu.has("avx512_bf16")) tiles.push_back(&kAvx512Bf16Tiles);
  if (bf16_tiles(cpu) == &kAmxBf16Tiles) tiles.push_back(&kAmxBf16Tiles);
#endif
  return tiles;
}

enum class Order { kFp32, kPairs, kAmx };

Order order_of(const ProductTiles& tiles) {
  const std::string instructions = tiles.instructions;
  return instructions == "AMX BF16"       ? Order::kAmx
         : instructions == "AVX-512 BF16" ? Order::kPairs
                                          : Order::kFp32;
}

/// Rows of numbers that are multiplied with each other, rounded as an operand is, with zeros up to
/// an even size.
std::vector<float> operand_rows(Numbers& m, bool transposed, bool bf16) {
  const Matrix all = m.view();
  const std::int64_t rows = transposed ? all.cols : all.rows;
  const std::int64_t depth = transposed ? all.rows : all.cols, size = depth + depth % 2;
  std::vector<float> values(static_cast<std::size_t>(rows * size));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t k = 0; k < depth; ++k) {
      const float value = transposed ? all.row(k)[r] : all.row(r)[k];
      Bf16 half;
      round_to_nearest(value, half);
      values[static_cast<std::size_t>(r * size + k)] = bf16 ? to_float(half) : value;
    }
  }
  return values;
}

/// What a product adds for a block of the depth: one number after the other; two at a time, the
/// second of the two first; or those at even places, and then those at odd ones.
float sum_of_block(const float* left, const float* right, std::int64_t depth, Order order) {
  float sum = 0.0F, odd = 0.0F;
  for (std::int64_t k = 0; k < depth; ++k) {
    const std::int64_t at = order == Order::kPairs ? k ^ 1 : k;
    float& of = order == Order::kAmx && k % 2 == 1 ? odd : sum;
    of = std::fma(left[at], right[at], of);
  }
  return sum + odd;
}

/// Element `before` of the result, after the product of two rows was added, or without it.
float sum_of(const float* left,
             const float* right,
             std::int64_t depth,
             Order order,
             const float* before) {
  const std::int64_t block = order == Order::kAmx     ? 32
                             : order == Order::kPairs ? 2 * ProductTiles::kDepth
                                                      : ProductTiles::kDepth;
  const bool ends_with_before = order == Order::kAmx;
  float sum = before == nullptr || ends_with_before ? 0.0F : *before;
  for (std::int64_t first = 0; first == 0 || first < depth; first += block) {
    const std::int64_t count = std::min(depth - first, block);
    const std::int64_t even_count = order == Order::kFp32 ? count : count + count % 2;
    sum += sum_of_block(left + first, right + first, even_count, order);
  }
  return before != nullptr && ends_with_before ? sum + *before : sum;
}

/// [rows, cols, depth], then: is a transposed, is b, is the product added, bias and ReLU.
using Case = std::tuple<Shape, bool, bool, bool, bool>;

class Product : public testing::TestWithParam<Case> {};

TEST_P(Product, HasTheBitsOfTheDefinition) {
  const auto [shape, transpose_a, transpose_b, accumulate, ends] = GetParam();
  const auto [rows, cols, depth] = shape;
  for (const ProductTiles* tiles : all_tiles()) {
    const Order order = order_of(*tiles);
    const bool bf16 = order != Order::kFp32;
    Numbers a(transpose_a ? depth : rows, transpose_a ? rows : depth, 3, 1);
    Numbers b(transpose_b ? cols : depth, transpose_b ? depth : cols, 5, 2);
    Numbers c(rows, cols, 7, 3), before(rows, cols, 7, 3), bias(1, cols, 0, 4);
    TiledProduct(*tiles).multiply(
        a.view(), transpose_a, b.view(), transpose_b, c.view(),
        {.accumulate = accumulate, .bias = ends ? bias.view().data : nullptr, .relu = ends});
    const std::vector<float> left = operand_rows(a, transpose_a, bf16);
    const std::vector<float> right = operand_rows(b, !transpose_b, bf16);
    const std::int64_t size = depth + depth % 2;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < cols; ++j) {
        float sum = sum_of(left.data() + i * size, right.data() + j * size, depth, order,
                           accumulate ? &before.view().row(i)[j] : nullptr);
        if (ends) sum = std::max(0.0F, sum + bias.view().data[j]);
        ASSERT_EQ(c.view().row(i)[j], sum) << i << ", " << j << ", " << tiles->instructions;
      }
    }
    EXPECT_TRUE(c.kept_its_gaps()) << tiles->instructions;
  }
}

// No value, one, one tile and its neighbours in rows and columns, as tall as a tile can be, a block
// of the depth and its neighbours, columns that become rows.
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
                                                          Shape{64, 13, 33},
                                                          Shape{14, 128, 255},
                                                          Shape{197, 17, 257},
                                                          Shape{70, 150, 31}),
                                          testing::Bool(),
                                          testing::Bool(),
                                          testing::Bool(),
                                          testing::Bool()));

TEST(TiledProduct, MemoryOfOneProductServesTheNext) {
  std::uint64_t draws = 0;
  const auto draw = [&](std::uint64_t end) {
    return static_cast<std::int64_t>(hash64(draws++, 11) % end);
  };
  for (const ProductTiles* tiles : all_tiles()) {
    TiledProduct kept(*tiles);
    for (int i = 0; i < 300; ++i) {
      const std::int64_t rows = draw(40), cols = draw(i % 2 == 0 ? 20 : 150), depth = draw(70);
      const bool transpose_a = draw(2) == 0, transpose_b = draw(2) == 0;
      Numbers a(transpose_a ? depth : rows, transpose_a ? rows : depth, draw(2) * 200, 1);
      Numbers b(transpose_b ? cols : depth, transpose_b ? depth : cols, draw(2) * 200, 2);
      Numbers c(rows, cols, 2, 3), expected(rows, cols, 2, 3);
      kept.multiply(a.view(), transpose_a, b.view(), transpose_b, c.view(), {});
      TiledProduct(*tiles).multiply(a.view(), transpose_a, b.view(), transpose_b, expected.view(),
                                    {});
      for (std::int64_t r = 0; r < rows; ++r) {
        ASSERT_TRUE(
            std::ranges::equal(std::span(c.view().row(r), static_cast<std::size_t>(cols)),
                               std::span(expected.view().row(r), static_cast<std::size_t>(cols))))
            << tiles->instructions << ": " << rows << "x" << cols << "x" << depth;
      }
      ASSERT_TRUE(c.kept_its_gaps());
    }
  }
}

TEST(TiledProduct, OfAnyPartOfTheRowsHasTheBitsOfTheWhole) {
  for (const ProductTiles* tiles : all_tiles()) {
    Numbers a(50, 700, 0, 1), b(90, 700, 0, 2), whole(50, 90, 0, 3), part(50, 90, 0, 4);
    TiledProduct product(*tiles);
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
}

TEST(TiledProduct, WhatIsNoNumberStaysSo) {
  for (const ProductTiles* tiles : all_tiles()) {
    Numbers a(2, 2, 0, 1), b(2, 2, 0, 2), c(2, 2, 0, 3), bias(1, 2, 0, 4);
    a.view().row(1)[0] = std::numeric_limits<float>::quiet_NaN();
    TiledProduct(*tiles).multiply(a.view(), false, b.view(), false, c.view(),
                                  {.bias = bias.view().data, .relu = true});
    for (const std::int64_t j : {0, 1}) {
      EXPECT_TRUE(std::isfinite(c.view().row(0)[j])) << tiles->instructions;
      EXPECT_TRUE(std::isnan(c.view().row(1)[j])) << tiles->instructions;
    }
  }
}

TEST(TiledProduct, EachCpuHasTilesOfItsOwn) {
#if defined(__x86_64__)
  const auto cpu = [](std::vector<std::string> features) {
    return Cpu{.name = "", .vendor = "", .features = std::move(features)};
  };
  EXPECT_EQ(&fp32_tiles(cpu({})), &kBaseTiles);
  EXPECT_EQ(&fp32_tiles(cpu({"avx2"})), &kAvx2Tiles);
  EXPECT_EQ(&fp32_tiles(cpu({"avx2", "avx512f", "avx512bw"})), &kAvx512Tiles);
  EXPECT_EQ(bf16_tiles(cpu({"avx2", "avx512f", "avx512bw"})), nullptr);
  EXPECT_EQ(bf16_tiles(cpu({"avx512f", "avx512bw", "avx512_bf16"})), &kAvx512Bf16Tiles);
  const bool has_amx = inspect_cpu().has("amx_bf16");
  EXPECT_EQ(bf16_tiles(cpu({"avx512_bf16", "amx_bf16"})),
            has_amx ? &kAmxBf16Tiles : &kAvx512Bf16Tiles);
#else
  EXPECT_EQ(&fp32_tiles(inspect_cpu()), &kBaseTiles);
  EXPECT_EQ(bf16_tiles(inspect_cpu()), nullptr);
#endif
}

}  // namespace
}  // namespace satrap::dense
