#include "src/data/generate/generated_rows.h"

#include <gtest/gtest.h>

#include "satrap/data/open_rows.h"
#include "tests/data/parsed_rows.h"

namespace satrap::data {
namespace {

SyntheticConfig small() {
  SyntheticConfig config;
  config.rows = 5000;
  config.cardinalities = {100, 1000};
  config.max_ids = {1, 3};
  config.num_numeric = 2;
  return config;
}

std::vector<ParsedRow> generated(const RowPass& pass,
                                 std::int64_t offset = 0,
                                 std::int64_t num_rows = 5000) {
  GeneratedRows rows(std::make_shared<const SyntheticGenerator>(small()), offset, num_rows, pass);
  return all_rows(rows);
}

std::vector<ParsedRow> from_generator(std::int64_t first, std::int64_t end) {
  RowBlock block;
  SyntheticGenerator(small()).generate(first, end - first, block);
  block.first_row = first;
  block.row_numbers.clear();
  std::vector<ParsedRow> rows;
  append_rows(block, rows);
  return rows;
}

TEST(GeneratedRows, AreThoseOfTheGeneratorForAnyNumberOfThreads) {
  const std::vector<ParsedRow> expected = from_generator(0, 5000);
  for (const std::int64_t num_threads : {1, 3}) {
    EXPECT_TRUE(generated({.num_threads = num_threads}) == expected);
  }
}

TEST(GeneratedRows, EvaluationRowsFollowTheTrainingRows) {
  std::vector<ParsedRow> expected = from_generator(5000, 5100);
  for (ParsedRow& row : expected) row.number -= 5000;
  EXPECT_TRUE(generated({}, 5000, 100) == expected);
}

TEST(GeneratedRows, APassMayBeginAndEndAnywhere) {
  for (const std::int64_t first : {1, 1023, 1024, 1500, 4999}) {
    EXPECT_TRUE(generated({.first_row = first}) == from_generator(first, 5000)) << first;
  }
  EXPECT_TRUE(generated({.first_row = 10, .max_rows = 20}) == from_generator(10, 20));
  EXPECT_TRUE(generated({.first_row = 5000}).empty());
}

using Batches = std::vector<std::vector<std::uint64_t>>;

/// The ids of each batch.
Batches ids_of(const DataConfig& config, Role role = Role::kTrain) {
  const Schema schema = resolve_schema(config);
  const auto source = open_batches(Dataset(config), fixed_transforms(schema), role, {});
  Batches batches;
  for (Batch batch; source->next(batch);) batches.push_back(batch.ids);
  return batches;
}

DataConfig batches_of_100() {
  DataConfig config;
  config.format = DataFormat::kSynthetic;
  config.synthetic.rows = 250;
  config.synthetic.eval_rows = 100;
  config.synthetic.cardinalities = {100, 1000};
  config.batch_size = 100;
  return config;
}

TEST(GeneratedBatches, NeedNoFile) {
  const Batches batches = ids_of(batches_of_100());
  ASSERT_EQ(batches.size(), 3U);
  EXPECT_EQ(batches[2].size(), 100U) << "of 50 rows";
  EXPECT_EQ(ids_of(batches_of_100(), Role::kEval)[0].size(), 200U);
}

TEST(PieceOfPass, PiecesGiveTheRowsOfTheSplitInOrder) {
  for (const std::int64_t world_size : {1, 3}) {
    for (const std::int64_t rows_per_turn : {1, 7, 64}) {
      for (const std::int64_t first_row : {0, 5, 100, 499}) {
        for (std::int64_t rank = 0; rank < world_size; ++rank) {
          const RowPass pass{
              .first_row = first_row,
              .split = {.rank = rank, .world_size = world_size, .rows_per_turn = rows_per_turn}};
          std::vector<std::int64_t> rows;
          for (std::int64_t piece = 0;; ++piece) {
            const RowRange range = piece_of_pass(pass, 500, 10, piece);
            if (range.first >= 500) break;
            for (std::int64_t row = range.first; row < range.end; ++row) rows.push_back(row);
          }
          std::vector<std::int64_t> expected;
          for (std::int64_t row = first_row; row < 500; ++row) {
            if (pass.split.owns(row)) expected.push_back(row);
          }
          ASSERT_EQ(rows, expected) << world_size << " " << rows_per_turn << " " << first_row;
        }
      }
    }
  }
}

}  // namespace
}  // namespace satrap::data
