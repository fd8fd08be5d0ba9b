#include "satrap/data/id_texts.h"

#include <string>

#include <gtest/gtest.h>

namespace satrap::data {
namespace {

TEST(IdTexts, AreFoundByTheirIds) {
  IdTexts texts;
  texts.add(7, "red");
  texts.add(7, "another text with the same hash");
  EXPECT_EQ(texts.find(7), "red");
  EXPECT_EQ(texts.find(8), "");
}

TEST(IdTexts, ALongOneIsCut) {
  IdTexts texts;
  texts.add(1, std::string(50, 'x'));
  EXPECT_EQ(texts.find(1), std::string(40, 'x') + "...");
}

}  // namespace
}  // namespace satrap::data
