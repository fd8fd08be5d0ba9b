#include "src/dense/field_columns.h"

#include <numeric>

#include <gtest/gtest.h>

namespace satrap::dense {
namespace {

InputShape padded_shape(const std::vector<std::int64_t>& widths) {
  InputShape shape;
  shape.field_widths = widths;
  for (const std::int64_t width : widths) {
    shape.device_columns.push_back(shape.device_width);
    shape.device_width += (width + 3) / 4 * 4;
  }
  return shape;
}

std::vector<float> numbers(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

TEST(FieldColumns, AreSideBySideInTheHostsMemory) {
  const FieldColumns columns(padded_shape({3, 3, 4, 1}));
  EXPECT_EQ(columns.host_width(), 11);
  EXPECT_EQ(columns.device_width(), 16);
  const std::vector<float> host = numbers(22);
  std::vector<float> device(32, -1.0F);
  columns.to_device({host.data(), 2, 11}, device.data());
  EXPECT_EQ(device,
            (std::vector<float>{1,  2,  3,  0, 4,  5,  6,  0, 7,  8,  9,  10, 11, 0, 0, 0,
                                12, 13, 14, 0, 15, 16, 17, 0, 18, 19, 20, 21, 22, 0, 0, 0}));
  std::vector<float> back(26, -1.0F);  // rows of 11 columns, 13 apart
  columns.to_host(device.data(), {back.data(), 2, 11, 13});
  for (std::int64_t r = 0; r < 2; ++r) {
    for (std::int64_t c = 0; c < 13; ++c) {
      EXPECT_EQ(back[static_cast<std::size_t>(r * 13 + c)],
                c < 11 ? host[static_cast<std::size_t>(r * 11 + c)] : -1.0F);
    }
  }
}

TEST(FieldColumns, OfEqualWidthAreNarrowedTogether) {
  EXPECT_EQ(FieldColumns(padded_shape({3, 3, 3})).narrowed("x"),
            "x[:, 0:12].reshape([-1, 3, 4])[:, :, 0:3].reshape([-1, 9])");
  EXPECT_EQ(FieldColumns(padded_shape({3, 8})).narrowed("x"),
            "torch.cat([x[:, 0:4].reshape([-1, 1, 4])[:, :, 0:3].reshape([-1, 3]), "
            "x[:, 4:12].reshape([-1, 1, 8])[:, :, 0:8].reshape([-1, 8])], 1)");
}

TEST(FieldColumns, WithoutPaddingStayAsTheyAre) {
  EXPECT_EQ(FieldColumns(padded_shape({4, 8, 4})).narrowed("x"), "x");
  InputShape shape;
  shape.field_widths = {3, 5};
  EXPECT_EQ(FieldColumns(shape).narrowed("x"), "x");
  EXPECT_EQ(FieldColumns(shape).device_width(), 8);
  EXPECT_EQ(FieldColumns(InputShape()).device_width(), 0);
}

}  // namespace
}  // namespace satrap::dense
