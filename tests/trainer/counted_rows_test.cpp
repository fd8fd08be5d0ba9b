#include "satrap/trainer/counted_rows.h"

#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::trainer {
namespace {

using Floats = std::vector<float>;
using testing::ElementsAre;
using testing::IsEmpty;

const float kMissing = std::nanf("");

TEST(CountedRows, OfOneLabelWithoutWeightsAreTheRowsThemselves) {
  const Floats p = {.5F, .25F}, y = {1, 0};
  const CountedRows counted({p, y}, 1, 0);
  EXPECT_EQ(counted.rows().probabilities.data(), p.data());
  EXPECT_EQ(counted.rows().labels.data(), y.data());
  EXPECT_THAT(counted.rows().weights, IsEmpty());
}

TEST(CountedRows, LeaveOutMissingLabelsAndWeightsOfZero) {
  const Floats p = {.1F, .2F, .3F, .4F, .5F, .6F}, y = {1, 0, kMissing, 1, 0, 1}, w = {2, 3, 0};
  const CountedRows first({p, y, w}, 2, 0), second({p, y, w}, 2, 1);
  EXPECT_THAT(first.rows().probabilities, ElementsAre(.1F));
  EXPECT_THAT(first.rows().weights, ElementsAre(2));
  EXPECT_THAT(second.rows().probabilities, ElementsAre(.2F, .4F));
  EXPECT_THAT(second.rows().labels, ElementsAre(0, 1));
  EXPECT_THAT(second.rows().weights, ElementsAre(2, 3));
  const std::vector<int> numbers = {7, 8, 9};
  std::vector<int> memory;
  EXPECT_THAT(second.of(std::span(numbers), memory), ElementsAre(7, 8));
  EXPECT_THAT(second.of(std::span<const int>(), memory), IsEmpty());
}

TEST(CountedRows, OfSeveralLabelsAreApart) {
  const Floats p = {.1F, .2F, .3F, .4F}, y = {1, 0, 0, 1};
  const CountedRows counted({p, y}, 2, 1);
  EXPECT_THAT(counted.rows().probabilities, ElementsAre(.2F, .4F));
  EXPECT_THAT(counted.rows().weights, IsEmpty());
}

TEST(CountedRows, PositivesMayWeighMore) {
  const Floats p = {.5F, .25F, .75F, .125F}, y = {1, 0, kMissing, 1}, w = {2, 3, 5, 7};
  EXPECT_THAT(CountedRows({p, y, w}, 1, 0, 10).rows().weights, ElementsAre(20, 3, 70));
  const Floats all = {1, 0, 0, 1};
  EXPECT_THAT(CountedRows({p, all}, 1, 0, 10).rows().weights, ElementsAre(10, 1, 1, 10));
  EXPECT_THAT(CountedRows({p, all}, 2, 1, 10).rows().weights, ElementsAre(1, 10));
}

TEST(CountedRows, OfClassesHaveTwoNumbersEach) {
  const Floats predictions{.125F, .25F, .625F, .5F, .5F, 0, .25F, .5F, .25F}, y{1, 0, 2};
  const Floats w{1, 0, 2};
  Floats memory{7};
  const auto scores = of_classes(predictions, y, 3, memory);
  EXPECT_THAT(scores, ElementsAre(.25F, 2, .5F, 0, .25F, 1)) << "the first of equal classes";
  EXPECT_THAT(CountedRows({scores, y, w}, 1, 0).rows().probabilities,
              ElementsAre(.25F, 2, .25F, 1));
  EXPECT_EQ(of_classes(y, y, 0, memory).data(), y.data());
  EXPECT_THROW(of_classes(y, y, 3, memory), Error);
}

TEST(CountedRows, MayBeNone) {
  EXPECT_THAT(CountedRows({Floats{.5F}, Floats{1}, Floats{0}}, 1, 0).rows().labels, IsEmpty());
  EXPECT_THAT(CountedRows({}, 3, 2).rows().labels, IsEmpty());
}

TEST(CountedRows, RefuseWrongSizes) {
  const Floats two = {1, 0}, one = {1};
  EXPECT_THROW(CountedRows({one, two}, 1, 0), Error);
  EXPECT_THROW(CountedRows({two, two, one}, 1, 0), Error);
  EXPECT_THROW(CountedRows({one, one}, 2, 0), Error);
}

}  // namespace
}  // namespace satrap::trainer
