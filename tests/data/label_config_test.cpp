#include "satrap/data/label_config.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace satrap::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr float kInfinite = std::numeric_limits<float>::infinity();

TEST(LabelConfig, AllowsWhatTheLabelMayBe) {
  const LabelConfig binary, number{.type = LabelType::kNumber}, classes{.classes = 3};
  for (const float label : {0.0F, 1.0F}) {
    EXPECT_TRUE(binary.allows(label) && number.allows(label) && classes.allows(label));
  }
  EXPECT_TRUE(classes.allows(2.0F) && number.allows(-7.25F));
  for (const float label : {2.0F, -1.0F, 0.5F}) EXPECT_FALSE(binary.allows(label)) << label;
  for (const float label : {3.0F, -1.0F, 0.5F, 1e30F}) EXPECT_FALSE(classes.allows(label)) << label;
  for (const float label : {kInfinite, -kInfinite, std::nanf("")}) {
    EXPECT_FALSE(binary.allows(label) || number.allows(label) || classes.allows(label)) << label;
  }
}

TEST(LabelConfig, NamesItsClasses) {
  EXPECT_THAT(LabelConfig{}.class_names(), IsEmpty());
  EXPECT_THAT((LabelConfig{.classes = 3}).class_names(),
              ElementsAre("class_0", "class_1", "class_2"));
  EXPECT_THAT((LabelConfig{.classes = 2, .values = {"cat", "dog"}}).class_names(),
              ElementsAre("cat", "dog"));
}

TEST(LabelConfig, IsOneKind) {
  EXPECT_TRUE(LabelConfig{}.is_binary() && LabelConfig{}.is_plain());
  EXPECT_FALSE((LabelConfig{.threshold = {3}}).is_plain());
  EXPECT_FALSE((LabelConfig{.type = LabelType::kNumber}).is_binary());
  EXPECT_FALSE((LabelConfig{.classes = 2}).is_binary());
}

}  // namespace
}  // namespace satrap::data
