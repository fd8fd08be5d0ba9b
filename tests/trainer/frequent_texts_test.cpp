#include "src/trainer/frequent_texts.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace satrap::trainer {
namespace {

using Hashes = std::vector<std::uint64_t>;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(FrequentTexts, OfFewTextsAllAreThere) {
  FrequentTexts texts;
  texts.add(1, "a");
  texts.add(2, "");
  texts.add(1, "a");
  EXPECT_EQ(*texts.find(1), "a");
  EXPECT_EQ(*texts.find(2), "");
  EXPECT_EQ(texts.find(3), nullptr);
}

TEST(FrequentTexts, WhatIsFrequentIsThereAtTheEndOfAnyStream) {
  FrequentTexts texts;
  std::uint64_t other = 10, rows = 0;
  // A fourth of the rows at first, then one of a thousand; all others are there once.
  for (int i = 0; i < 400'000; ++i, ++rows) {
    const bool is_frequent = i < 400 ? i % 4 == 0 : i % 1000 == 0;
    if (is_frequent) {
      texts.add(1, "frequent");
    } else {
      texts.add(other, std::to_string(other));
      ++other;
    }
  }
  ASSERT_NE(texts.find(1), nullptr);
  EXPECT_EQ(*texts.find(1), "frequent");
  std::size_t kept = 0;
  for (std::uint64_t hash = 1; hash < other; ++hash) kept += texts.find(hash) != nullptr ? 1 : 0;
  EXPECT_LE(kept, FrequentTexts::kMaxTexts);
}

TEST(FrequentTexts, LongTextsAreCutBetweenCharacters) {
  FrequentTexts texts;
  texts.add(1, std::string(100, 'x'));
  texts.add(2, std::string(63, 'x') + "éé");
  texts.add(3, std::string(63, 'x') + "\xC3" + std::string(9, 'x'));  // no UTF-8
  EXPECT_EQ(*texts.find(1), std::string(64, 'x'));
  EXPECT_EQ(*texts.find(2), std::string(63, 'x'));
  EXPECT_EQ(texts.find(3)->size(), 64U);
}

TEST(MostFrequent, AreInTheOrderOfTheirNumberThenOfTheirHash) {
  EXPECT_THAT(most_frequent({7, 5, 9, 5, 9, 3}, 3), ElementsAre(5, 9, 3));
  EXPECT_THAT(most_frequent({7, 5, 9, 5, 9, 3}, 9), ElementsAre(5, 9, 3, 7));
  EXPECT_THAT(most_frequent({}, 3), IsEmpty());
}

TEST(MostFrequent, AreMoreThanOneInSoMany) {
  Hashes hashes;
  for (std::uint64_t i = 0; i < 2 * FrequentTexts::kMaxTexts - 1; ++i) hashes.push_back(100 + i);
  hashes.push_back(100);
  EXPECT_THAT(most_frequent(hashes, 3), IsEmpty()) << "two of 8192";
  hashes.push_back(100);
  EXPECT_THAT(most_frequent(hashes, 3), ElementsAre(100)) << "three of 8193";
}

}  // namespace
}  // namespace satrap::trainer
