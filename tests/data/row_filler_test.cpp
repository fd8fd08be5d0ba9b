#include "src/data/rows/row_filler.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace satrap::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// One number, one column of ids, and one of weighted ids.
class RowFillerTest : public testing::Test {
 protected:
  static Schema schema() {
    DataConfig config;
    config.format = DataFormat::kCsv;
    config.schema.label.column = "clicked";
    config.schema.numeric.resize(1);
    config.schema.numeric[0].name = "price";
    config.schema.features.resize(2);
    config.schema.features[0].name = "user";
    config.schema.features[1].name = "words";
    config.schema.features[1].separator = " ";
    config.schema.features[1].weight_separator = ":";
    return resolve_schema(config);
  }

  void put_row(std::int64_t number, float price, std::uint64_t user) {
    filler_.label(0) = 1;
    filler_.number(0) = price;
    filler_.put_id(0, user);
    filler_.push_id(1, user + 1, 0.5F);
    filler_.push_id(1, user + 2, 0.25F);
    filler_.end_row(number);
  }

  const Schema schema_ = schema();
  RowFiller filler_{schema_};
  RowBlock rows_;
};

TEST_F(RowFillerTest, WithoutRowsIsAnEmptyBlock) {
  filler_.begin(rows_, 0);
  filler_.finish();
  EXPECT_EQ(rows_.num_rows, 0);
  EXPECT_THAT(rows_.labels, IsEmpty());
  EXPECT_THAT(rows_.bags[1].offsets, ElementsAre(0));
}

TEST_F(RowFillerTest, RowsStandOneAfterTheOther) {
  filler_.begin(rows_, 9);
  put_row(4, 2.5F, 10);
  put_row(6, 3.5F, 20);
  filler_.finish();
  EXPECT_EQ(rows_.num_rows, 2);
  EXPECT_EQ(rows_.first_row, 4);
  EXPECT_THAT(rows_.row_numbers, ElementsAre(4, 6));
  EXPECT_THAT(rows_.labels, ElementsAre(1, 1));
  EXPECT_THAT(rows_.numeric[0], ElementsAre(2.5F, 3.5F));
  EXPECT_THAT(rows_.bags[0].ids, ElementsAre(10, 20));
  EXPECT_THAT(rows_.bags[0].weights, IsEmpty());
  EXPECT_THAT(rows_.bags[1].offsets, ElementsAre(0, 2, 4));
  EXPECT_THAT(rows_.bags[1].ids, ElementsAre(11, 12, 21, 22));
  EXPECT_THAT(rows_.bags[1].weights, ElementsAre(0.5F, 0.25F, 0.5F, 0.25F));
}

TEST_F(RowFillerTest, OfADroppedRowNothingIsLeft) {
  filler_.begin(rows_, 3);
  put_row(1, 1, 10);
  filler_.put_id(0, 99);
  filler_.push_id(1, 99, 9);
  EXPECT_EQ(filler_.num_ids(1), 1);
  filler_.drop_row();
  EXPECT_EQ(filler_.num_ids(1), 0);
  put_row(3, 2, 20);
  filler_.finish();
  EXPECT_THAT(rows_.row_numbers, ElementsAre(1, 3));
  EXPECT_THAT(rows_.bags[0].ids, ElementsAre(10, 20));
  EXPECT_THAT(rows_.bags[1].ids, ElementsAre(11, 12, 21, 22));
}

TEST_F(RowFillerTest, ARowWithoutValuesHasNoneAtAll) {
  filler_.begin(rows_, 2);
  filler_.add_row_without_values(7);
  put_row(8, 2, 20);
  filler_.finish();
  EXPECT_TRUE(std::isnan(rows_.labels[0]));
  EXPECT_TRUE(std::isnan(rows_.numeric[0][0]));
  EXPECT_THAT(rows_.bags[0].offsets, ElementsAre(0, 0, 1));
}

TEST_F(RowFillerTest, BagsGrowBeyondAnIdARow) {
  filler_.begin(rows_, 1);
  for (std::uint64_t id = 0; id < 1000; ++id) filler_.push_id(1, id, static_cast<float>(id));
  filler_.keep_last_ids(1, 1000);
  EXPECT_EQ(filler_.num_ids(1), 1000);
  filler_.keep_last_ids(1, 2);
  filler_.end_row(0);
  filler_.finish();
  EXPECT_THAT(rows_.bags[1].ids, ElementsAre(998, 999));
  EXPECT_THAT(rows_.bags[1].weights, ElementsAre(998, 999));
}

TEST_F(RowFillerTest, ABlockIsUsedAgain) {
  for (const std::uint64_t user : {10, 30}) {
    filler_.begin(rows_, 2);
    put_row(1, 1, user);
    filler_.finish();
    EXPECT_THAT(rows_.bags[0].ids, ElementsAre(user));
    EXPECT_THAT(rows_.bags[1].offsets, ElementsAre(0, 2));
  }
}

}  // namespace
}  // namespace satrap::data
