#include "satrap/pipeline/row_reader.h"

#include <vector>

#include <gtest/gtest.h>

#include "satrap/pipeline/local_tables.h"
#include "tests/embedding/random_bags.h"

namespace satrap::pipeline {
namespace {

/// One table of 2 weights, with a bag and a sequence of up to two ids of it.
class RowReaderTest : public testing::Test {
 protected:
  static job::EmbeddingSpecs read_specs() {
    return {.tables = {embedding::table_spec(0, 2)},
            .features = {embedding::feature(0), embedding::feature(0, Pooling::kSequence, 2)},
            .seed = 7};
  }

  /// Looks `bags` up: [num_examples, 6].
  std::vector<float> look_up(const std::vector<std::vector<std::vector<std::uint64_t>>>& bags) {
    batch_ = embedding::batch_of(bags);
    reader_.look_up(batch_, inputs_);
    return inputs_.pooled_values();
  }

  /// Trains the rows of `ids` with a gradient of 1 everywhere.
  void train(const std::vector<std::uint64_t>& ids) {
    const data::Batch batch = embedding::batch_of({{ids}, {{}}});
    embedding::Planner planner(tables_.access().layout(), tables_.access().pool());
    const auto rows = tables_.access().make_rows();
    rows->make_plan(planner, batch, 1);
    rows->request(1);
    rows->wait();
    HostMatrix gradient;
    gradient.resize(1, 6);
    gradient.values().assign(6, 1.0F);
    rows->update(gradient.view(), 1);
    rows->wait_taken();
  }

  ThreadPool pool_{1};
  LocalTables tables_{read_specs(), pool_};
  RowReader reader_{tables_.access()};
  data::Batch batch_;
  PooledBatch inputs_;
};

TEST_F(RowReaderTest, CreatesNoRows) {
  look_up({{{1, 2}}, {{3}}});
  EXPECT_EQ(tables_.size().rows, 0);
}

TEST_F(RowReaderTest, OfNoExamplesThereIsNothing) { EXPECT_TRUE(look_up({{}, {}}).empty()); }

TEST_F(RowReaderTest, EmptyBagsAreZeros) {
  EXPECT_EQ(look_up({{{}}, {{}}}), std::vector<float>(6, 0.0F));
  EXPECT_EQ(inputs_.mask_values(), (std::vector<float>{0, 0}));
}

TEST_F(RowReaderTest, AMissingRowIsReadAsItWouldBeCreated) {
  const std::vector<float> missing = look_up({{{5}}, {{5}}});
  EXPECT_NE(missing[0], 0.0F);
  EXPECT_EQ(missing[2], missing[0]);  // the same row, in the bag and in the sequence
  EXPECT_EQ(missing[3], missing[1]);
  EXPECT_EQ(inputs_.mask_values(), (std::vector<float>{1, 0}));
  embedding::Planner planner(tables_.access().layout(), pool_);
  tables_.access().make_rows()->make_plan(planner, batch_, 1);
  EXPECT_EQ(tables_.size().rows, 1);
  EXPECT_EQ(look_up({{{5}}, {{5}}}), missing);
}

TEST_F(RowReaderTest, SeesTheRowsAsTheyAreNow) {
  const std::vector<float> before = look_up({{{5}}, {{6}}});
  train({5});
  const std::vector<float> after = look_up({{{5}}, {{6}}});
  EXPECT_LT(after[0], before[0]);
  EXPECT_LT(after[1], before[1]);
  EXPECT_EQ(after[2], before[2]);
}

TEST_F(RowReaderTest, BatchesOfOtherSizesFollowEachOther) {
  const std::vector<float> one = look_up({{{5}}, {{6}}});
  const std::vector<float> two = look_up({{{}, {5}}, {{}, {6}}});
  ASSERT_EQ(two.size(), 12U);
  EXPECT_EQ(std::vector<float>(two.begin() + 6, two.end()), one);
  EXPECT_EQ(look_up({{{5}}, {{6}}}), one);
}

}  // namespace
}  // namespace satrap::pipeline
