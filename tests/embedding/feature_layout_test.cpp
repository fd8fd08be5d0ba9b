#include "satrap/embedding/feature_layout.h"

#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::embedding {
namespace {

std::vector<table::TableSpec> tables() {
  std::vector<table::TableSpec> specs(2);
  specs[0].dim = 4;
  specs[1].dim = 10;
  specs[1].weights = FloatType::kBf16;
  return specs;
}

TEST(FeatureLayout, FeaturesFollowEachOtherAndSequencesHaveAMask) {
  const FeatureLayout layout({{"user", TableId{0}, Pooling::kSum, 1},
                              {"seen", TableId{1}, Pooling::kSequence, 3},
                              {"tags", TableId{1}, Pooling::kMean, 1},
                              {"bought", TableId{0}, Pooling::kSequence, 2}},
                             tables());
  std::vector<std::int64_t> columns, widths, mask_columns;
  for (const PlacedFeature& feature : layout.features) {
    columns.push_back(feature.column);
    widths.push_back(feature.width);
    mask_columns.push_back(feature.mask_column);
  }
  EXPECT_EQ(columns, (std::vector<std::int64_t>{0, 4, 34, 44}));
  EXPECT_EQ(widths, (std::vector<std::int64_t>{4, 30, 10, 8}));
  EXPECT_EQ(layout.features[1].vector_width, 10);
  EXPECT_EQ(mask_columns[1], 0);
  EXPECT_EQ(mask_columns[3], 3);
  EXPECT_EQ(layout.output_width, 52);
  EXPECT_EQ(layout.mask_width, 5);
  EXPECT_EQ(layout.features[2].weights, FloatType::kBf16);
}

TEST(FeatureLayout, OnADeviceEveryVectorIsPaddedAndTheMaskIsNot) {
  const FeatureLayout layout({{"user", TableId{0}, Pooling::kSum, 1},
                              {"seen", TableId{1}, Pooling::kSequence, 3},
                              {"tags", TableId{1}, Pooling::kMean, 1},
                              {"bought", TableId{0}, Pooling::kSequence, 2}},
                             tables(), FeatureLayout::kDeviceColumns);
  std::vector<std::int64_t> columns, vector_widths, widths;
  for (const PlacedFeature& feature : layout.features) {
    columns.push_back(feature.column);
    vector_widths.push_back(feature.vector_width);
    widths.push_back(feature.width);
  }
  EXPECT_EQ(columns, (std::vector<std::int64_t>{0, 4, 40, 52}));
  EXPECT_EQ(vector_widths, (std::vector<std::int64_t>{4, 12, 12, 4}));
  EXPECT_EQ(widths, (std::vector<std::int64_t>{4, 36, 12, 8}));
  EXPECT_EQ(layout.output_width, 60);
  EXPECT_EQ(layout.mask_width, 5);
  EXPECT_EQ(layout.features[1].dim, 10);
}

TEST(FeatureLayout, WithoutFeaturesItIsEmpty) {
  const FeatureLayout layout({}, tables());
  EXPECT_EQ(layout.output_width, 0);
  EXPECT_EQ(layout.mask_width, 0);
}

TEST(FeatureLayout, ATableOrALengthThatCannotBeIsRefused) {
  const auto lay_out = [](const job::FeatureSpec& spec) { return FeatureLayout({spec}, tables()); };
  EXPECT_THROW(lay_out({"user", TableId{2}, Pooling::kSum, 1}), Error);
  EXPECT_THROW(lay_out({"user", TableId{0}, Pooling::kSum, 2}), Error);
  EXPECT_THROW(lay_out({"user", TableId{0}, Pooling::kSequence, 0}), Error);
  EXPECT_THROW(FeatureLayout({}, tables(), 0), Error);
}

}  // namespace
}  // namespace satrap::embedding
