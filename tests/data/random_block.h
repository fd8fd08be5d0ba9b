#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/hash.h"
#include "satrap/data/row_block.h"

namespace satrap::data {

/// Rows with two labels, three columns of numbers with missing ones, of which the last needs 64
/// bits, columns of ids of every width
/// and with weights, and two columns of texts. `rows` < 0: some.
inline RowBlock random_block(std::uint64_t seed, std::int64_t rows = -1) {
  const RandomStream random{hash64(seed, 1)};
  std::uint64_t draws = 0;
  const auto below = [&](std::uint64_t bound) { return random.below(draws++, bound); };
  RowBlock block;
  block.clear(3, 6, 2);
  block.kept.resize(2);
  block.num_rows = rows < 0 ? static_cast<std::int64_t>(below(300)) : rows;
  std::int64_t number = static_cast<std::int64_t>(below(1'000'000'000'000));
  block.first_row = number;
  block.rows_read = static_cast<std::int64_t>(below(1000));
  for (std::int64_t r = 0; r < block.num_rows; ++r) {
    block.row_numbers.push_back(number);
    number += 1 + static_cast<std::int64_t>(below(20) == 0 ? below(100'000) : 0);
    for (int l = 0; l < 2; ++l) block.labels.push_back(static_cast<float>(below(2)));
    for (std::vector<double>& column : block.numeric) {
      const bool is_float = &column != &block.numeric.back();
      column.push_back(below(4) == 0 ? std::numeric_limits<double>::quiet_NaN()
                                     : static_cast<double>(below(1000)) / (is_float ? 8 : 7) - 60);
    }
    for (std::size_t i = 0; i < block.bags.size(); ++i) {
      RowBlock::Bags& bags = block.bags[i];
      const std::uint64_t length = i < 2 ? 1 : i == 5 ? 2 + below(300) : below(4);
      for (std::uint64_t k = 0; k < length; ++k) {
        bags.ids.push_back(i == 0 ? 42 : random.bits(draws++) >> (12 * (i - 1)));
        if (i == 3) bags.weights.push_back(static_cast<float>(below(9)) / 3);
      }
      bags.offsets.push_back(static_cast<std::int64_t>(bags.ids.size()));
    }
    block.kept[0].push(std::string(below(20), 'x'));
    block.kept[1].push("");
  }
  return block;
}

/// To the bit: a missing number is one of the same bits.
inline void expect_equal(const RowBlock& a, const RowBlock& b) {
  const auto bits_of = [](const auto& values) {
    std::vector<std::uint64_t> bits;
    for (const auto value : values) {
      bits.push_back(std::bit_cast<std::uint64_t>(static_cast<double>(value)));
    }
    return bits;
  };
  EXPECT_EQ(a.num_rows, b.num_rows);
  EXPECT_EQ(a.first_row, b.first_row);
  EXPECT_EQ(a.row_numbers, b.row_numbers);
  EXPECT_EQ(a.rows_read, b.rows_read);
  EXPECT_EQ(a.num_labels, b.num_labels);
  EXPECT_EQ(bits_of(a.labels), bits_of(b.labels));
  ASSERT_EQ(a.numeric.size(), b.numeric.size());
  for (std::size_t i = 0; i < a.numeric.size(); ++i) {
    EXPECT_EQ(bits_of(a.numeric[i]), bits_of(b.numeric[i]));
  }
  ASSERT_EQ(a.bags.size(), b.bags.size());
  for (std::size_t i = 0; i < a.bags.size(); ++i) {
    EXPECT_EQ(a.bags[i].offsets, b.bags[i].offsets);
    EXPECT_EQ(a.bags[i].ids, b.bags[i].ids);
    EXPECT_EQ(bits_of(a.bags[i].weights), bits_of(b.bags[i].weights));
  }
  ASSERT_EQ(a.kept.size(), b.kept.size());
  for (std::size_t i = 0; i < a.kept.size(); ++i) {
    EXPECT_EQ(a.kept[i].ends, b.kept[i].ends);
    EXPECT_EQ(a.kept[i].bytes, b.kept[i].bytes);
  }
}

}  // namespace satrap::data
