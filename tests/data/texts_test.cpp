#include "satrap/data/texts.h"

#include <gtest/gtest.h>

namespace satrap::data {
namespace {

TEST(Texts, AreThoseThatWerePut) {
  Texts texts;
  texts.push("a");
  texts.push("");
  texts.push("bcd");
  ASSERT_EQ(texts.size(), 3);
  EXPECT_EQ(texts.at(0), "a");
  EXPECT_EQ(texts.at(1), "");
  EXPECT_EQ(texts.at(2), "bcd");
}

TEST(Texts, AreForgottenFromTheEnd) {
  Texts texts;
  texts.push("a");
  texts.push("bcd");
  texts.resize(1);
  texts.push("e");
  EXPECT_EQ(texts.at(1), "e");
  texts.clear();
  EXPECT_EQ(texts.size(), 0);
  texts.push("f");
  EXPECT_EQ(texts.at(0), "f");
}

}  // namespace
}  // namespace satrap::data
