#include "satrap/data/row_block.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "tests/data/random_block.h"

namespace satrap::data {
namespace {

/// The ids and weights of a row in one column.
std::vector<double> ids_of(const RowBlock& block, std::size_t column, std::int64_t row) {
  const RowBlock::Bags& bags = block.bags[column];
  std::vector<double> ids;
  for (std::int64_t i = bags.offsets[static_cast<std::size_t>(row)];
       i < bags.offsets[static_cast<std::size_t>(row) + 1]; ++i) {
    const auto at = static_cast<std::size_t>(i);
    ids.push_back(static_cast<double>(bags.ids[at]));
    ids.push_back(bags.weights.empty() ? 1.0 : static_cast<double>(bags.weights[at]));
  }
  return ids;
}

TEST(RowBlock, ClearGivesEmptyColumnsOfTheGivenNumbers) {
  RowBlock block;
  block.clear(2, 1, 3);
  EXPECT_EQ(block.num_rows, 0);
  EXPECT_EQ(block.num_labels, 3);
  EXPECT_EQ(block.numeric, std::vector<std::vector<double>>(2));
  ASSERT_EQ(block.bags.size(), 1U);
  EXPECT_EQ(block.bags[0].offsets, std::vector<std::int64_t>{0});
  EXPECT_TRUE(block.bags[0].ids.empty());
}

TEST(RowBlock, ClearForgetsTheRowsAndKeepsTheirMemory) {
  RowBlock block;
  block.clear(1, 1);
  block.num_rows = 2;
  block.first_row = 7;
  block.row_numbers = {7, 9};
  block.labels = {0, 1};
  block.numeric[0] = {1, 2};
  block.bags[0] = {.offsets = {0, 1, 2}, .ids = {5, 6}, .weights = {1, 1}};
  const double* const memory = block.numeric[0].data();
  block.clear(1, 1);
  EXPECT_EQ(block.num_rows, 0);
  EXPECT_EQ(block.first_row, 0);
  EXPECT_TRUE(block.row_numbers.empty());
  EXPECT_TRUE(block.labels.empty());
  EXPECT_TRUE(block.numeric[0].empty());
  EXPECT_EQ(block.bags[0].offsets, std::vector<std::int64_t>{0});
  EXPECT_TRUE(block.bags[0].ids.empty());
  EXPECT_TRUE(block.bags[0].weights.empty());
  EXPECT_EQ(block.numeric[0].data(), memory);
  block.clear(0, 2);
  EXPECT_TRUE(block.numeric.empty());
  EXPECT_EQ(block.bags.size(), 2U);
  EXPECT_EQ(block.num_labels, 1);
}

TEST(RowBlock, RowsAreNumberedOnFromTheFirstUnlessTheyHaveNumbers) {
  RowBlock block;
  block.num_rows = 3;
  block.first_row = 100;
  EXPECT_EQ(block.row_number(0), 100);
  EXPECT_EQ(block.row_number(2), 102);
  block.row_numbers = {4, 8, 15};
  EXPECT_EQ(block.row_number(0), 4);
  EXPECT_EQ(block.row_number(2), 15);
}

TEST(RowBlock, DropsTheRowsBeforeANumber) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RowBlock block = random_block(seed, 12);
    for (std::int64_t dropped = 0; dropped <= 12; ++dropped) {
      RowBlock rest = block;
      rest.drop_before(dropped < 12 ? block.row_number(dropped) : block.row_number(11) + 1);
      ASSERT_EQ(rest.num_rows, 12 - dropped);
      for (std::int64_t r = 0; r < rest.num_rows; ++r) {
        const std::int64_t old = dropped + r;
        EXPECT_EQ(rest.row_number(r), block.row_number(old));
        EXPECT_EQ(rest.labels[static_cast<std::size_t>(2 * r)],
                  block.labels[static_cast<std::size_t>(2 * old)]);
        EXPECT_EQ(rest.kept[0].at(r), block.kept[0].at(old));
        for (std::size_t b = 0; b < block.bags.size(); ++b) {
          EXPECT_EQ(ids_of(rest, b, r), ids_of(block, b, old));
        }
      }
    }
  }
}

}  // namespace
}  // namespace satrap::data
