#include "satrap/pipeline/stages.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace satrap::pipeline {
namespace {

TEST(Stages, EachHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const char* name : kStageNames) {
    ASSERT_NE(name, nullptr);
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_STREQ(kStageNames[kStageRead], "read");
  EXPECT_STREQ(kStageNames[kStageDense], "dense");
  EXPECT_STREQ(kStageNames[kStageWait], "wait");
}

}  // namespace
}  // namespace satrap::pipeline
