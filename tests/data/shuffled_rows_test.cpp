#include "src/data/rows/shuffled_rows.h"

#include <algorithm>

#include "tests/data/parsed_rows.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

/// Rows whose label, numbers, ids and weights all derive from the row's number, in blocks of 100.
class NumberedRows : public RowBlockSource {
 public:
  explicit NumberedRows(std::int64_t num_rows) : num_rows_(num_rows) {}

  bool next(RowBlock& block) override {
    block.clear(1, 2);
    block.first_row = next_row_;
    for (; block.num_rows < 100 && next_row_ < num_rows_; ++next_row_) {
      const auto row = static_cast<std::uint64_t>(next_row_);
      block.labels.push_back(static_cast<float>(row % 2));
      block.numeric[0].push_back(static_cast<float>(row));
      for (std::uint64_t i = 0; i < row % 4; ++i) {
        block.bags[0].ids.push_back(row << 40 | i);
        block.bags[1].ids.push_back(row);
        block.bags[1].weights.push_back(static_cast<float>(i));
      }
      for (RowBlock::Bags& bags : block.bags) {
        bags.offsets.push_back(static_cast<std::int64_t>(bags.ids.size()));
      }
      ++block.num_rows;
    }
    return block.num_rows > 0;
  }

 private:
  std::int64_t num_rows_;
  std::int64_t next_row_ = 0;
};

std::vector<ParsedRow> shuffled(std::int64_t num_rows,
                                std::int64_t buffer_rows,
                                std::uint64_t seed) {
  ShuffledRows rows(std::make_unique<NumberedRows>(num_rows), buffer_rows, RandomStream{seed});
  std::vector<ParsedRow> result = all_rows(rows);
  for (ParsedRow& row : result) row.number = 0;  // lost
  return result;
}

std::vector<ParsedRow> in_order(std::int64_t num_rows) {
  NumberedRows rows(num_rows);
  std::vector<ParsedRow> result = all_rows(rows);
  for (ParsedRow& row : result) row.number = 0;
  return result;
}

float number(const ParsedRow& row) { return std::stof(row.numeric[0]); }

TEST(ShuffledRows, EveryRowComesOnceAndWhole) {
  for (const std::int64_t num_rows : {0, 1, 99, 100, 5000}) {
    for (const std::int64_t buffer_rows : {1, 2, 150, 10'000}) {
      std::vector<ParsedRow> rows = shuffled(num_rows, buffer_rows, 1);
      std::sort(rows.begin(), rows.end(),
                [](const auto& a, const auto& b) { return number(a) < number(b); });
      EXPECT_TRUE(rows == in_order(num_rows)) << num_rows << " " << buffer_rows;
    }
  }
}

TEST(ShuffledRows, TheSeedDecidesTheOrder) {
  EXPECT_TRUE(shuffled(1000, 100, 1) == shuffled(1000, 100, 1));
  EXPECT_FALSE(shuffled(1000, 100, 1) == shuffled(1000, 100, 2));
  EXPECT_FALSE(shuffled(1000, 100, 1) == in_order(1000));
}

TEST(ShuffledRows, ABlockKnowsHowFarTheRowsWereTaken) {
  ShuffledRows rows(std::make_unique<NumberedRows>(3000), 150, RandomStream{1});
  RowBlock block;
  std::vector<std::int64_t> read;
  while (rows.next(block)) read.push_back(block.rows_read);
  EXPECT_EQ(read, (std::vector<std::int64_t>{1174, 2198, 3000}));  // 1024 a block, and the buffer
}

TEST(ShuffledRows, ABufferOfOneRowKeepsTheOrder) {
  EXPECT_TRUE(shuffled(1000, 1, 1) == in_order(1000));
}

TEST(ShuffledRows, ARowGoesOutNoEarlierThanTheBufferAllows) {
  const std::vector<ParsedRow> rows = shuffled(5000, 100, 1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ASSERT_LE(number(rows[i]), static_cast<float>(i + 99));
  }
}

TEST(ShuffledRows, AFullBufferIsAUniformPermutation) {
  // The destination of row 0 of four, over many seeds: each place a quarter of the time (±4 sigma).
  std::vector<int> times(4);
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const std::vector<ParsedRow> rows = shuffled(4, 4, hash64(seed));
    for (std::size_t i = 0; i < 4; ++i) times[i] += number(rows[i]) == 0.0F ? 1 : 0;
  }
  for (const int count : times) EXPECT_NEAR(count, 1000, 110);
}

}  // namespace
}  // namespace satrap::data
