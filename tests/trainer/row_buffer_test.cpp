#include "src/trainer/row_buffer.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace satrap::trainer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Rows numbered from `first`: numbers 10 n and 10 n + 1; features 0, the bag {n, n + 100}, of even
/// rows empty, and 1, the bag {n}; weights n / 2 of their ids.
data::Batch batch_of(std::uint64_t first, std::uint64_t rows) {
  data::Batch batch;
  batch.num_examples = static_cast<std::int64_t>(rows);
  batch.num_features = batch.num_numeric = 2;
  batch.offsets = {0};
  const auto push = [&](std::uint64_t n, std::uint64_t id) {
    batch.ids.push_back(id);
    batch.id_weights.push_back(static_cast<float>(n) / 2.0F);
  };
  for (int feature = 0; feature < 2; ++feature) {
    for (std::uint64_t n = first; n < first + rows; ++n) {
      if (feature == 1 || n % 2 == 1) push(n, n);
      if (feature == 0 && n % 2 == 1) push(n, n + 100);
      batch.offsets.push_back(std::ssize(batch.ids));
    }
  }
  for (std::uint64_t n = first; n < first + rows; ++n) {
    batch.labels.push_back(static_cast<float>(n % 2));
    batch.numeric.push_back(10.0F * static_cast<float>(n));
    batch.numeric.push_back(10.0F * static_cast<float>(n) + 1.0F);
  }
  return batch;
}

class RowBufferTest : public testing::Test {
 protected:
  RowBufferTest() {
    buffer_.add(batch_of(1, 2));
    buffer_.add(batch_of(3, 1));
  }

  data::Batch exchanged(std::size_t batch, const ModelInput& input) const {
    data::Batch result = batch_of(7, 5);  // is overwritten
    buffer_.exchange(batch, input, std::vector<std::size_t>{2, 0, 1}, result);
    return result;
  }

  RowBuffer buffer_;
};

TEST_F(RowBufferTest, ABagMovesWithItsWeightsAndNothingElse) {
  const data::Batch first = exchanged(0, {.name = "f", .feature = 0});
  EXPECT_THAT(first.ids, ElementsAre(3, 103, 1, 101, 1, 2));
  EXPECT_THAT(first.offsets, ElementsAre(0, 2, 4, 5, 6));
  EXPECT_THAT(first.id_weights, ElementsAre(1.5F, 1.5F, .5F, .5F, .5F, 1.0F));
  EXPECT_EQ(first.numeric, batch_of(1, 2).numeric);
  EXPECT_EQ(first.labels, batch_of(1, 2).labels);
  const data::Batch second = exchanged(1, {.name = "f", .feature = 0});
  EXPECT_THAT(second.ids, ElementsAre(3));
  EXPECT_THAT(second.offsets, ElementsAre(0, 0, 1));
}

TEST_F(RowBufferTest, ANumberMovesWithItsColumns) {
  const data::Batch one = exchanged(0, {.name = "n", .columns = {1}});
  EXPECT_THAT(one.numeric, ElementsAre(10, 31, 20, 11));
  EXPECT_EQ(one.ids, batch_of(1, 2).ids);
  const data::Batch both = exchanged(1, {.name = "n", .columns = {0, 1}});
  EXPECT_THAT(both.numeric, ElementsAre(20, 21));
}

TEST_F(RowBufferTest, IsEmptyAgainOnceItIsCleared) {
  EXPECT_EQ(buffer_.num_rows(), 3U);
  buffer_.clear();
  EXPECT_EQ(buffer_.num_rows(), 0U);
  EXPECT_THAT(buffer_.batches(), IsEmpty());
}

TEST(InputsOf, AreFeaturesThenNumbersWithTheirIndicators) {
  data::Schema schema;
  schema.features = {{.name = "f"}, {.name = "g"}};
  schema.numeric_names = {"a", "a.missing", "b"};
  schema.numeric_inputs = {{.output = 0, .config = {.missing_indicator = true}},
                           {.output = 2, .config = {}}};
  const std::vector<ModelInput> inputs = inputs_of(schema);
  ASSERT_EQ(inputs.size(), 4U);
  EXPECT_EQ(inputs[1].name, "g");
  EXPECT_EQ(inputs[1].feature, 1);
  EXPECT_EQ(inputs[2].name, "a");
  EXPECT_THAT(inputs[2].columns, ElementsAre(0, 1));
  EXPECT_THAT(inputs[3].columns, ElementsAre(2));
  EXPECT_EQ(inputs[3].feature, -1);
}

}  // namespace
}  // namespace satrap::trainer
