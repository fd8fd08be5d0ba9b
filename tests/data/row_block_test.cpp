#include "satrap/data/row_block.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace satrap::data {
namespace {

TEST(RowBlock, ClearGivesEmptyColumnsOfTheGivenNumbers) {
  RowBlock block;
  block.clear(2, 1, 3);
  EXPECT_EQ(block.num_rows, 0);
  EXPECT_EQ(block.num_labels, 3);
  EXPECT_EQ(block.numeric, std::vector<std::vector<float>>(2));
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
  const float* const memory = block.numeric[0].data();
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

}  // namespace
}  // namespace satrap::data
