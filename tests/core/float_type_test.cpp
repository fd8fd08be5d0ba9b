#include "satrap/core/float_type.h"

#include <string>

#include <gtest/gtest.h>

namespace satrap {
namespace {

TEST(FloatType, HasTheNameAndSizeOfItsFormat) {
  EXPECT_EQ(name_of(FloatType::kFp32), std::string("fp32"));
  EXPECT_EQ(name_of(FloatType::kBf16), std::string("bf16"));
  EXPECT_EQ(name_of(FloatType::kFp16), std::string("fp16"));
  EXPECT_EQ(bytes_of(FloatType::kFp32), 4);
  EXPECT_EQ(bytes_of(FloatType::kBf16), 2);
  EXPECT_EQ(bytes_of(FloatType::kFp16), 2);
}

TEST(FloatType, NumbersInMessagesAndCheckpointsStay) {
  EXPECT_EQ(static_cast<int>(FloatType::kFp32), 0);
  EXPECT_EQ(static_cast<int>(FloatType::kBf16), 1);
  EXPECT_EQ(static_cast<int>(FloatType::kFp16), 2);
}

TEST(FloatType, WithFloatTypeGivesTheTypeOfThatSize) {
  for (const FloatType type : {FloatType::kFp32, FloatType::kBf16, FloatType::kFp16}) {
    const auto size =
        with_float_type(type, [](auto t) { return sizeof(typename decltype(t)::type); });
    EXPECT_EQ(static_cast<std::int64_t>(size), bytes_of(type));
  }
  const auto is_bf16 = [](auto t) { return std::is_same_v<typename decltype(t)::type, Bf16>; };
  EXPECT_TRUE(with_float_type(FloatType::kBf16, is_bf16));
  EXPECT_FALSE(with_float_type(FloatType::kFp16, is_bf16));
}

TEST(FloatType, AnUnknownNumberIsABug) {
  EXPECT_THROW(with_float_type(static_cast<FloatType>(3), [](auto) { return 0; }), Error);
}

}  // namespace
}  // namespace satrap
