#include "src/embedding/check_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/embedding/random_bags.h"

namespace satrap::embedding {
namespace {

using ::testing::HasSubstr;

/// What is wrong with a batch for a layout of two features; "" if nothing is.
std::string problem_of(const data::Batch& batch, std::int64_t row_width = 8) {
  const FeatureLayout layout({feature(0), feature(0)}, {table_spec(0, 4)});
  try {
    check_batch(batch, layout, row_width);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
    return error.what();
  }
  return "";
}

data::Batch two_features() { return batch_of({{{1}, {}, {2, 3}}, {{}, {4}, {}}}); }

TEST(CheckBatch, APartThatFitsIsFine) {
  EXPECT_EQ(problem_of(two_features()), "");
  data::Batch weighted = two_features();
  weighted.id_weights.assign(weighted.ids.size(), 0.5F);
  EXPECT_EQ(problem_of(weighted), "");
}

TEST(CheckBatch, WithoutExamplesAndIdsItIsFine) {
  EXPECT_EQ(problem_of(batch_of({{}, {}})), "");
  EXPECT_EQ(problem_of(batch_of({{{}, {}}, {{}, {}}})), "");
}

TEST(CheckBatch, FeaturesAreThoseOfTheLayout) {
  EXPECT_THAT(problem_of(batch_of({{{1}}})), HasSubstr("batch of 1 features, layout of 2"));
}

TEST(CheckBatch, EveryBagHasItsOffset) {
  data::Batch batch = two_features();
  batch.offsets.push_back(batch.offsets.back());
  EXPECT_THAT(problem_of(batch), HasSubstr("batch of 3 rows has 8 offsets"));
  batch.offsets.clear();
  EXPECT_THAT(problem_of(batch), HasSubstr("has 0 offsets"));
}

TEST(CheckBatch, OffsetsEndWithTheIds) {
  data::Batch batch = two_features();
  batch.ids.pop_back();
  EXPECT_THAT(problem_of(batch), HasSubstr("offsets end at 4, ids at 3"));
}

TEST(CheckBatch, EveryIdHasAWeightOrNone) {
  data::Batch batch = two_features();
  batch.id_weights = {1.0F, 2.0F};
  EXPECT_THAT(problem_of(batch), HasSubstr("2 weights for 4 ids"));
}

TEST(CheckBatch, PlacesInThePooledOutputFit32Bits) {
  const std::int64_t most = 0xFFFFFFFF / 3;
  EXPECT_EQ(problem_of(two_features(), most), "");
  EXPECT_THAT(problem_of(two_features(), most + 1), HasSubstr("use a smaller batch"));
}

}  // namespace
}  // namespace satrap::embedding
