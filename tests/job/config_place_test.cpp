#include "satrap/job/config_place.h"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace satrap::job {
namespace {

/// The message of an Error of this text, thrown where the places of values are `origins`.
std::string placed(const ConfigOrigins& origins, const std::string& text) {
  try {
    with_place(origins, [&] { throw Error(ErrorCode::kUnavailable, text); });
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    return error.what();
  }
  return "no error";
}

TEST(ConfigPlace, StandsInFrontOfAMessageThatBeginsWithAPath) {
  const ConfigOrigins origins = {{"model.top", "train.yaml:12"}, {"model", "train.yaml:10"}};
  EXPECT_EQ(placed(origins, "model.top: too wide"), "train.yaml:12: model.top: too wide");
  EXPECT_EQ(placed(origins, "model: a: b"), "train.yaml:10: model: a: b");
}

TEST(ConfigPlace, AnyOtherMessageStaysAsItIs) {
  const ConfigOrigins origins = {{"model.top", "train.yaml:12"}};
  EXPECT_EQ(placed(origins, "model.bottom: too wide"), "model.bottom: too wide");
  EXPECT_EQ(placed(origins, "model.top is too wide"), "model.top is too wide");
  EXPECT_EQ(placed(origins, ""), "");
  EXPECT_EQ(placed({}, "model.top: too wide"), "model.top: too wide");
}

TEST(ConfigPlace, OtherExceptionsAndNonePassThrough) {
  const ConfigOrigins origins = {{"a", "train.yaml:1"}};
  int times = 0;
  with_place(origins, [&] { ++times; });
  EXPECT_EQ(times, 1);
  EXPECT_THROW(with_place(origins, [] { throw std::runtime_error("a: x"); }), std::runtime_error);
}

}  // namespace
}  // namespace satrap::job
