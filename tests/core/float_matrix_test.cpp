#include "satrap/core/float_matrix.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(FloatMatrix, AViewOfAMatrixHasItsShapeAndValues) {
  HostMatrix matrix(2, 3);
  std::iota(matrix.values().begin(), matrix.values().end(), 0.0F);
  const FloatMatrix view = matrix.view();
  EXPECT_EQ(view.stride, 3);
  EXPECT_EQ(host_values(view, 2, 3, "it")[5], 5.0F);
  EXPECT_EQ(host_values(ConstFloatMatrix(view), 2, 3, "it"), matrix.values().data());
}

TEST(FloatMatrix, ColumnsAreAMatrixWithTheStrideOfTheWhole) {
  HostMatrix matrix(2, 4);
  std::iota(matrix.values().begin(), matrix.values().end(), 0.0F);
  const FloatMatrix part = matrix.columns(1, 2);
  const float* values = host_values(part, 2, 2, "a part");
  EXPECT_EQ(part.stride, 4);
  EXPECT_EQ(values[0], 1.0F);
  EXPECT_EQ(values[part.stride + 1], 6.0F);
  EXPECT_EQ(matrix.columns(4, 0).cols, 0);
  EXPECT_THROW(matrix.columns(3, 2), Error);
}

TEST(FloatMatrix, AnotherShapeTypeOrPlaceIsRefusedByName) {
  HostMatrix matrix(2, 3);
  FloatMatrix view = matrix.view();
  EXPECT_THAT([&] { host_values(view, 3, 2, "labels"); },
              ThrowsMessage<Error>(HasSubstr("labels: 3 rows of 2 values wanted, got 2 of 3")));
  view.type = FloatType::kBf16;
  EXPECT_THAT([&] { host_values(view, 2, 3, "labels"); },
              ThrowsMessage<Error>(HasSubstr("labels: fp32 wanted, got bf16")));
  view = matrix.view();
  view.place = Place::kDevice;
  EXPECT_THAT([&] { host_values(view, 2, 3, "labels"); },
              ThrowsMessage<Error>(HasSubstr("labels: is in the memory of a device")));
  view = matrix.view();
  view.stride = 2;
  EXPECT_THROW(host_values(view, 2, 3, "labels"), Error);
  EXPECT_THROW(host_matrix(std::span(matrix.values()), 3, 3), Error);
}

TEST(FloatMatrix, WithoutValuesAnyShapeWithoutValuesWillDo) {
  const FloatMatrix nothing;
  EXPECT_NO_THROW(host_values(nothing, 5, 0, "a mask"));
  EXPECT_NO_THROW(host_values(nothing, 0, 5, "an empty batch"));
  EXPECT_THROW(host_values(nothing, 1, 5, "a batch"), Error);
}

TEST(HostMatrix, ASmallerShapeAndTheLargestAgainDoNotAllocate) {
  HostMatrix matrix(8, 16);
  const float* before = matrix.values().data();
  matrix.resize(0, 16);
  matrix.resize(3, 2);
  matrix.resize(8, 16);
  EXPECT_EQ(matrix.values().data(), before);
}

}  // namespace
}  // namespace satrap
