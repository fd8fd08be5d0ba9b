#include "satrap/kernels/pool.h"

#include <cmath>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace satrap {
namespace {

using ::testing::ElementsAre;

/// Rows with 16 bytes before their weights, as in tables.
struct Rows {
  Rows(std::int64_t num_rows, std::int64_t dim, unsigned seed)
      : memory(static_cast<std::size_t>(num_rows * (dim + 4))) {
    std::mt19937 random(seed);
    for (float& x : memory) x = std::normal_distribution<float>()(random);
    for (std::int64_t i = 0; i < num_rows; ++i) {
      pointers.push_back(reinterpret_cast<const std::byte*>(memory.data() + i * (dim + 4)));
    }
  }
  const float* weights(std::int32_t row) const {
    return reinterpret_cast<const float*>(pointers[static_cast<std::size_t>(row)] + 16);
  }
  std::vector<float> memory;
  std::vector<const std::byte*> pointers;
};

TEST(PoolBags, SumsWeightedRowsAndZeroesEmptyBags) {
  Rows rows(2, 1, 1);
  rows.memory[4] = 10.0F;
  rows.memory[9] = 100.0F;
  const std::vector<std::int32_t> unique_of = {0, 1, 1};
  const std::vector<float> coefficient = {1.0F, 2.0F, 0.5F};
  const std::vector<std::int64_t> offsets = {0, 2, 2, 3};
  std::vector<float> out(6, -1.0F);  // stride 2: the second column is not ours
  pool_bags({rows.pointers.data(), 16, unique_of.data(), coefficient.data()}, offsets.data(), 3,
            out.data(), 2, std::int64_t{1});
  EXPECT_THAT(out, ElementsAre(210, -1, 0, -1, 50, -1));
}

class PoolKernels : public testing::TestWithParam<std::int64_t> {};

TEST_P(PoolKernels, AgreeWithPlainLoopsToTheBit) {
  const std::int64_t dim = GetParam();
  std::mt19937 random(3);
  const Rows rows(40, dim, 2);
  std::vector<std::int64_t> offsets = {5};  // ids before and after belong to other features
  for (int b = 0; b < 50; ++b)
    offsets.push_back(offsets.back() + static_cast<std::int64_t>(random() % 7));
  offsets.push_back(offsets.back() + 300);
  const auto num_bags = static_cast<std::int64_t>(offsets.size()) - 1;
  std::vector<std::int32_t> unique_of;
  std::vector<float> coefficient;
  for (std::int64_t i = 0; i < offsets.back() + 3; ++i) {
    unique_of.push_back(static_cast<std::int32_t>(random() % 40));
    coefficient.push_back(static_cast<float>(random() % 5) - 2.0F);
  }
  std::vector<float> expected(static_cast<std::size_t>(num_bags * dim));
  for (std::int64_t b = 0; b < num_bags; ++b) {
    for (std::int64_t i = offsets[static_cast<std::size_t>(b)];
         i < offsets[static_cast<std::size_t>(b) + 1]; ++i) {
      for (std::int64_t d = 0; d < dim; ++d) {
        float& sum = expected[static_cast<std::size_t>(b * dim + d)];
        sum = std::fma(coefficient[static_cast<std::size_t>(i)],
                       rows.weights(unique_of[static_cast<std::size_t>(i)])[d], sum);
      }
    }
  }
  const GatherSource source{rows.pointers.data(), 16, unique_of.data(), coefficient.data()};
  std::vector<float> out(expected.size(), NAN);
  with_dim(dim, [&](auto width) {
    pool_bags(source, offsets.data(), num_bags, out.data(), dim, width);
  });
  EXPECT_EQ(out, expected);

  // The same sums as gradients: occurrences at any place of a dense array.
  std::vector<float> grad(1000 + static_cast<std::size_t>(dim));
  for (float& g : grad) g = std::normal_distribution<float>()(random);
  std::vector<std::uint32_t> places;
  for (std::size_t j = 0; j < coefficient.size(); ++j) {
    places.push_back(static_cast<std::uint32_t>(random() % 1000));
  }
  std::vector<float> sum(static_cast<std::size_t>(dim)), reduced(sum.size(), NAN);
  for (std::size_t j = 7; j < 57; ++j) {
    for (std::size_t d = 0; d < sum.size(); ++d) {
      sum[d] = std::fma(coefficient[j], grad[places[j] + d], sum[d]);
    }
  }
  const Occurrences occurrences{grad.data(), places.data(), coefficient.data(), std::ssize(places)};
  std::vector<float> scratch(2 * sum.size());
  with_dim(dim, [&](auto width) {
    reduce_segment(occurrences, 7, 57, reduced.data(), scratch.data(), width);
  });
  EXPECT_EQ(reduced, sum);
}

/// Vectors in order, `size` of them added to one, as in the chunks and groups of sum_order.h.
std::vector<std::vector<float>> add_by(std::size_t size,
                                       const std::vector<std::vector<float>>& vectors) {
  std::vector<std::vector<float>> sums;
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    if (i % size == 0) {
      sums.push_back(vectors[i]);
    } else {
      for (std::size_t d = 0; d < sums.back().size(); ++d) sums.back()[d] += vectors[i][d];
    }
  }
  return sums;
}

TEST_P(PoolKernels, GradientsOfHotKeysAreAddedInChunksAndGroups) {
  const std::int64_t dim = GetParam();
  const auto width = static_cast<std::size_t>(dim);
  std::mt19937_64 random(5);
  std::vector<float> grad(500 + width), coefficient;
  for (float& g : grad) g = std::normal_distribution<float>()(random);
  std::vector<std::uint32_t> places;
  for (int j = 0; j < 9000; ++j) {
    places.push_back(static_cast<std::uint32_t>(random() % 500));
    coefficient.push_back(std::uniform_real_distribution<float>(-1, 1)(random));
  }
  const Occurrences occurrences{grad.data(), places.data(), coefficient.data(), std::ssize(places)};
  constexpr auto kChunk = static_cast<std::size_t>(kSumChunk);
  for (const std::size_t count :
       std::initializer_list<std::size_t>{0, 1, 64, 65, 127, 128, 129, 4096, 4097, 8192, 8900}) {
    const std::size_t begin = 3;
    std::vector<std::vector<float>> chunks;
    for (std::size_t i = 0; i < count; ++i) {
      if (i % kChunk == 0) chunks.emplace_back(width);
      for (std::size_t d = 0; d < width; ++d) {
        float& sum = chunks.back()[d];
        sum = std::fma(coefficient[begin + i], grad[places[begin + i] + d], sum);
      }
    }
    if (chunks.size() > kChunk) chunks = add_by(kChunk, chunks);
    const std::vector<float> expected =
        chunks.empty() ? std::vector<float>(width) : add_by(chunks.size(), chunks)[0];
    std::vector<float> reduced(width, NAN), scratch(2 * width, NAN);
    with_dim(dim, [&](auto fixed) {
      reduce_segment(occurrences, 3, 3 + static_cast<std::int64_t>(count), reduced.data(),
                     scratch.data(), fixed);
    });
    EXPECT_EQ(reduced, expected) << count;
  }
}

TEST_P(PoolKernels, SequencesKeepTheirElementsApart) {
  const std::int64_t dim = GetParam();
  const Rows rows(3, dim, 2);
  const std::vector<std::int32_t> unique_of = {-1, 2, 0, -1};
  const std::vector<float> coefficient = {9.0F, 2.0F, -1.0F, 9.0F};
  std::vector<float> out(static_cast<std::size_t>(2 * dim));
  with_dim(dim, [&](auto width) {
    scale_rows({rows.pointers.data(), 16, unique_of.data(), coefficient.data()}, 1, 2, out.data(),
               width);
  });
  for (std::int64_t d = 0; d < dim; ++d) {
    EXPECT_EQ(out[static_cast<std::size_t>(d)], 2.0F * rows.weights(2)[d]);
    EXPECT_EQ(out[static_cast<std::size_t>(dim + d)], -rows.weights(0)[d]);
  }
}

INSTANTIATE_TEST_SUITE_P(Dims, PoolKernels, testing::Values(1, 4, 8, 16, 17, 32, 64, 100));

}  // namespace
}  // namespace satrap
