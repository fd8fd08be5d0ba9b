#include "satrap/data/synthetic_config.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/data/synthetic.h"

namespace satrap::data {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string message_of(const std::function<void(SyntheticConfig&)>& spoil) {
  SyntheticConfig config;
  spoil(config);
  try {
    config.validate("here");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    return error.what();
  }
  return "";
}

TEST(SyntheticConfig, DefaultsHaveTheShapeOfCriteoKaggle) {
  const SyntheticConfig config;
  EXPECT_NO_THROW(config.validate("here"));
  EXPECT_EQ(config.num_features(), 26);
  EXPECT_EQ(config.num_numeric, 13);
  std::int64_t sum = 0;
  for (std::int64_t f = 0; f < 26; ++f) sum += config.scaled_cardinality(f);
  EXPECT_EQ(sum, 33'762'577);
}

TEST(SyntheticConfig, RefusesContradictions) {
  const std::string length = message_of([](auto& c) { c.zipf = {1.0, 1.1}; });
  EXPECT_THAT(length, StartsWith("here: zipf"));
  EXPECT_THAT(length, HasSubstr("26 features, got 2"));
  EXPECT_THAT(message_of([](auto& c) { c.numeric_missing = {0.1, 0.2}; }),
              HasSubstr("13 numeric columns, got 2"));
  EXPECT_THAT(message_of([](auto& c) { c.min_ids = {2}; }),
              HasSubstr("min_ids must not exceed max_ids, feature 0 has 2 and 1"));
  EXPECT_THAT(message_of([](auto& c) { c.scale = 1e9; }), HasSubstr("at most 2^48"));
  EXPECT_THAT(message_of([](auto& c) { c.cardinalities.clear(); }), HasSubstr("at least one"));
  EXPECT_THAT(message_of([](auto& c) { c.interaction_share = c.numeric_share = 0.7; }),
              HasSubstr("at most 1, got 1.4"));
}

TEST(SyntheticConfig, IsCheckedByTheGenerator) {
  SyntheticConfig config;
  config.max_ids = {0};
  EXPECT_THROW(SyntheticGenerator{config}, Error);
}

}  // namespace
}  // namespace satrap::data
