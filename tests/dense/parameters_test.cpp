#include "src/dense/parameters.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace satrap::dense {
namespace {

using Values = std::vector<float>;

/// The parameters and buffers of a layout, filled from a seed.
std::pair<Values, Values> initialized(const Layout& layout, std::uint64_t seed) {
  Values parameters(static_cast<std::size_t>(layout.num_parameters()), -9.0F);
  Values buffers(static_cast<std::size_t>(layout.num_buffer_values()), -9.0F);
  layout.initialize(seed, parameters, buffers);
  return {parameters, buffers};
}

TEST(DenseLayout, OfNothingIsEmpty) {
  const Layout layout;
  EXPECT_EQ(layout.num_parameters(), 0);
  EXPECT_EQ(layout.num_buffer_values(), 0);
  EXPECT_EQ(initialized(layout, 1), std::pair(Values{}, Values{}));
}

TEST(DenseLayout, ParametersStandOneAfterTheOther) {
  Layout layout;
  const ParameterId w = layout.add_parameter("w", {2, 3}, 0.5F);
  const ParameterId b = layout.add_parameter("b", {2}, 0.5F);
  const ParameterId one = layout.add_parameter("one", {1, 1}, 0.0F, 1.0F);
  EXPECT_EQ(layout.parameters()[w].offset, 0);
  EXPECT_EQ(layout.parameters()[w].size(), 6);
  EXPECT_EQ(layout.parameters()[b].offset, 6);
  EXPECT_EQ(layout.parameters()[one].offset, 8);
  EXPECT_EQ(layout.parameters()[one].name, "one");
  EXPECT_EQ(layout.num_parameters(), 9);
}

TEST(DenseLayout, BuffersAreApartFromParametersAndHaveTheirInitialValue) {
  Layout layout;
  layout.add_parameter("w", {2}, 0.0F, 5.0F);
  const BufferId mean = layout.add_buffer("mean", 2, 0.0F);
  const BufferId var = layout.add_buffer("var", 3, 1.0F);
  EXPECT_EQ(layout.buffers()[mean].offset, 0);
  EXPECT_EQ(layout.buffers()[var].offset, 2);
  EXPECT_EQ(initialized(layout, 1), std::pair(Values({5, 5}), Values({0, 0, 1, 1, 1})));
}

TEST(DenseLayout, ScratchHasTheRowsOfThePassOrItsOwn) {
  Layout layout;
  EXPECT_EQ(layout.add_scratch(7), 0U);
  EXPECT_EQ(layout.add_scratch(3, 1), 1U);
  EXPECT_EQ(layout.scratch()[0].cols, 7);
  EXPECT_EQ(layout.scratch()[0].fixed_rows, 0);
  EXPECT_EQ(layout.scratch()[1].fixed_rows, 1);
}

TEST(DenseLayout, ConstantsAndGivenValuesDoNotDependOnTheSeed) {
  Layout layout;
  layout.add_parameter("given", {3}, Values{1, 2, 3});
  layout.add_parameter("constant", {2}, 0.0F, 0.5F);
  EXPECT_EQ(initialized(layout, 1).first, (Values{1, 2, 3, 0.5F, 0.5F}));
  EXPECT_EQ(initialized(layout, 2), initialized(layout, 1));
}

TEST(DenseLayout, RandomValuesFillTheirRangeAndNoMore) {
  Layout layout;
  layout.add_parameter("w", {100, 100}, 0.5F);
  const Values values = initialized(layout, 1).first;
  const auto [least, most] = std::ranges::minmax(values);
  EXPECT_GE(least, -0.5F);
  EXPECT_LT(least, -0.499F);
  EXPECT_LT(most, 0.5F);
  EXPECT_GT(most, 0.499F);
  double sum = 0.0;
  for (const float v : values) sum += static_cast<double>(v);
  EXPECT_NEAR(sum / 10000, 0.0, 0.012);  // four standard deviations
  std::vector<float> distinct = values;
  std::ranges::sort(distinct);
  EXPECT_GT(std::ranges::unique(distinct).begin() - distinct.begin(), 9980);
}

TEST(DenseLayout, RandomValuesFollowFromSeedAndNumberOfTheParameter) {
  Layout layout;
  layout.add_parameter("a", {4}, 1.0F);
  layout.add_parameter("b", {4}, 1.0F);
  const Values first = initialized(layout, 1).first;
  EXPECT_EQ(initialized(layout, 1).first, first);
  EXPECT_NE(initialized(layout, 2).first, first);
  EXPECT_NE(Values(first.begin(), first.begin() + 4), Values(first.begin() + 4, first.end()));

  Layout longer;  // what follows makes no difference, nor does a size or a name
  longer.add_parameter("c", {2, 3}, 1.0F);
  longer.add_parameter("d", {4}, 1.0F);
  longer.add_parameter("e", {1}, 1.0F);
  const Values other = initialized(longer, 1).first;
  EXPECT_TRUE(std::equal(first.begin(), first.begin() + 4, other.begin()));
  EXPECT_TRUE(std::equal(first.begin() + 4, first.end(), other.begin() + 6));
}

}  // namespace
}  // namespace satrap::dense
