#include "satrap/core/choice.h"

#include <gtest/gtest.h>

namespace satrap {
namespace {

enum class Shelf { kHost, kGpu };
constexpr Choice<Shelf> kShelves[] = {{"host", Shelf::kHost},
                                      {"cuda", Shelf::kGpu},
                                      {"gpu", Shelf::kGpu}};

TEST(Choice, AValueIsWrittenAsItsFirstWord) {
  EXPECT_EQ(word_of(Shelf::kHost, kShelves), "host");
  EXPECT_EQ(word_of(Shelf::kGpu, kShelves), "cuda");
  EXPECT_THROW(word_of(static_cast<Shelf>(2), kShelves), Error);
}

TEST(Choice, AWordHasAValueOrNone) {
  EXPECT_EQ(value_of<Shelf>("gpu", kShelves), Shelf::kGpu);
  EXPECT_EQ(value_of<Shelf>("Gpu", kShelves), std::nullopt);
  EXPECT_EQ(value_of<Shelf>("", kShelves), std::nullopt);
}

TEST(Choice, NamesInTheOrderOfTheValuesAreATable) {
  static constexpr const char* kNames[] = {"main", "spare"};
  constexpr auto kTable = numbered_choices<Shelf>(kNames);
  EXPECT_EQ(word_of(Shelf::kGpu, kTable), "spare");
  EXPECT_EQ(value_of<Shelf>("main", kTable), Shelf::kHost);
}

}  // namespace
}  // namespace satrap
