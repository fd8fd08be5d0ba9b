#include "src/app/expectation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "satrap/core/error.h"

namespace satrap::app {
namespace {

using testing::HasSubstr;
using Summary = nlohmann::ordered_json;

Summary summary_with(double auc, std::int64_t examples) {
  return {{"examples", examples}, {"eval", {{"auc", auc}}}};
}

/// The message of the error; "": there is none.
std::string complaint(const job::ExpectConfig& expect, const Summary& summary) {
  try {
    check_expectation(expect, summary);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDiverged);
    return error.what();
  }
  return "";
}

TEST(Expectation, BoundsAreExpected) {
  const job::ExpectConfig expect{.auc = {0.75, 0.8125}, .min_examples = 0};
  EXPECT_EQ(complaint(expect, summary_with(0.75, 1)), "");
  EXPECT_EQ(complaint(expect, summary_with(0.8125, 1)), "");
}

TEST(Expectation, OutsideIsAnErrorThatSaysWhatToLookAt) {
  const job::ExpectConfig expect{.auc = {0.75, 0.8125}, .min_examples = 0};
  EXPECT_THAT(complaint(expect, summary_with(0.5, 1)),
              HasSubstr("has 0.5000, expected 0.75 to 0.8125; look at what is said above"));
  EXPECT_THAT(complaint(expect, summary_with(0.9, 1)), HasSubstr("tells the label"));
}

TEST(Expectation, NoAucIsAnError) {
  const Summary summary = {{"examples", 1}, {"eval", {{"auc", nullptr}}}};
  EXPECT_THAT(complaint({.auc = {0.5, 1.0}, .min_examples = 0}, summary), HasSubstr("has none"));
}

TEST(Expectation, OfFewExamplesNothingIsExpected) {
  const job::ExpectConfig expect{.auc = {0.75, 0.8125}, .min_examples = 100};
  EXPECT_EQ(complaint(expect, summary_with(0.5, 99)), "");
  EXPECT_NE(complaint(expect, summary_with(0.5, 100)), "");
}

TEST(Expectation, NothingIsExpectedUnlessSaid) {
  EXPECT_EQ(complaint({}, summary_with(0.1, 1)), "");
}

}  // namespace
}  // namespace satrap::app
