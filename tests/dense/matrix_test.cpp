#include "src/dense/matrix.h"

#include <gtest/gtest.h>

namespace satrap::dense {
namespace {

TEST(DenseMatrix, OfNothingIsEmpty) {
  float value = 0.0F;
  EXPECT_TRUE(Matrix().empty());
  EXPECT_TRUE(Matrix(&value, 0, 3).empty());
  EXPECT_TRUE(Matrix(&value, 3, 0).empty());
  EXPECT_FALSE(Matrix(&value, 1, 1).empty());
}

TEST(DenseMatrix, PartsArePlacesInTheSameMemory) {
  float values[12] = {};
  const Matrix whole(values, 3, 4);
  EXPECT_EQ(whole.row(2), values + 8);
  const Matrix columns = whole.columns(1, 2);
  EXPECT_EQ(columns.rows, 3);
  EXPECT_EQ(columns.cols, 2);
  EXPECT_EQ(columns.row(2), values + 9);
  const Matrix part = columns.row_range(1, 2);
  EXPECT_EQ(part.rows, 2);
  EXPECT_EQ(part.cols, 2);
  EXPECT_EQ(part.row(1), values + 9);
  const ConstMatrix read_only = part;
  EXPECT_EQ(read_only.row(0), values + 5);
  EXPECT_EQ(read_only.stride, 4);
}

TEST(DenseMatrix, TwoMayStandForOne) {
  float a[4] = {}, b[6] = {};
  const Matrix left(a, 2, 2), right(b, 2, 3);
  const Joined both(left, right);
  EXPECT_TRUE(both.is_split());
  EXPECT_EQ(both.rows(), 2);
  EXPECT_EQ(both.cols(), 5);
  const Joined one(left);
  EXPECT_FALSE(one.is_split());
  EXPECT_EQ(one.cols(), 2);
}

TEST(DenseMatrix, OneOfTwoWithoutColumnsIsLeftOut) {
  float a[4] = {}, b[6] = {};
  const Matrix left(a, 2, 2), right(b, 2, 3), none(a, 2, 0);
  const Joined only_right(none, right), only_left(left, none);
  EXPECT_FALSE(only_right.is_split());
  EXPECT_EQ(only_right.left.data, b);
  EXPECT_EQ(only_right.cols(), 3);
  EXPECT_FALSE(only_left.is_split());
  EXPECT_EQ(only_left.left.data, a);
}

}  // namespace
}  // namespace satrap::dense
