#include "src/data/look/sample_value.h"

#include <string>

#include <gtest/gtest.h>

namespace satrap::data {
namespace {

TEST(SampledValue, IsTheValueUnlessThatIsLong) {
  EXPECT_EQ(sampled_value(""), "");
  EXPECT_EQ(sampled_value("gr\xC3\xB6\xC3\x9F"), "gr\xC3\xB6\xC3\x9F");
  const std::string most(kMaxValueBytes, 'x');
  EXPECT_EQ(sampled_value(most), most);
  EXPECT_EQ(sampled_value(most + "y"), most);
}

TEST(SampledValue, EndsWithAWholeCharacter) {
  const std::string most(kMaxValueBytes - 1, 'x');
  EXPECT_EQ(sampled_value(most + "\xC3\x9F"), most);
  EXPECT_EQ(sampled_value(most + "y\xC3\x9F"), most + "y");
}

}  // namespace
}  // namespace satrap::data
