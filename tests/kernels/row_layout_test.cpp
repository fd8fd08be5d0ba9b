#include "satrap/kernels/row_layout.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace satrap {
namespace {

using enum RowOptimizerType;
using enum FloatType;

TEST(RowLayout, PartsAreWholeUnitsOfSixteenBytes) {
  const RowLayout odd = RowLayout::of(5, kFp32, kAdam);
  EXPECT_EQ(odd.padded_dim, 8);
  EXPECT_EQ(odd.state_offset, 16 + 32);
  EXPECT_EQ(odd.state_floats, 16);
  EXPECT_EQ(odd.row_bytes, 16 + 32 + 64);
  const RowLayout rowwise = RowLayout::of(16, kFp32, kRowwiseAdagrad);
  EXPECT_EQ(rowwise.state_floats, 1);
  EXPECT_EQ(rowwise.row_bytes, 16 + 64 + 16);
  EXPECT_EQ(RowLayout::of(1, kBf16, kSgd).row_bytes, 16 + 16);
  EXPECT_EQ(RowLayout::of(8, kFp16, kAdagrad).row_bytes, 16 + 16 + 32);
  EXPECT_EQ(RowLayout::of(0, kFp32, kSgd).row_bytes, 16);
}

TEST(RowLayout, OnADeviceRowsAreWholeSectorsAndTheHeaderIsLast) {
  const RowLayout layout = RowLayout::of(16, kFp32, kRowwiseAdagrad);
  EXPECT_EQ(layout.device_stride, 96);
  EXPECT_EQ(layout.device_header_offset(), 80);
  EXPECT_EQ(layout.device_state_offset(), 64);
  EXPECT_EQ(layout.device_unit(0), 5);
  for (std::int64_t unit = 1; unit < 6; ++unit) EXPECT_EQ(layout.device_unit(unit), unit - 1);
  EXPECT_EQ(RowLayout::of(16, kFp32, kSgd).device_stride, 96);
}

TEST(RowLayout, APackedRowIsHeaderWeightsAndStateWithoutPadding) {
  const auto bytes = [](std::int64_t dim, FloatType weights) {
    return RowLayout::of(dim, weights, kAdagrad).packed_bytes();
  };
  EXPECT_EQ(bytes(5, kFp32), 16 + 20 + 20);
  EXPECT_EQ(bytes(5, kBf16), 16 + 12 + 20);
  EXPECT_EQ(bytes(1, kFp16), 16 + 4 + 4);
  EXPECT_EQ(bytes(16, kFp16), 16 + 32 + 64);
  EXPECT_EQ(RowLayout::of(7, kFp32, kRowwiseAdagrad).packed_bytes(), 16 + 28 + 4);
  EXPECT_EQ(RowLayout::of(0, kFp32, kSgd).packed_bytes(), 16);
}

/// A row whose significant numbers are all different.
std::vector<std::byte> some_row(const RowLayout& layout) {
  std::vector<std::byte> row(static_cast<std::size_t>(layout.row_bytes));
  const RowHeader header{static_cast<Key>(77), 5, 6};
  std::memcpy(row.data(), &header, sizeof(header));
  std::vector<float> weights;
  for (std::int64_t d = 0; d < layout.dim; ++d) weights.push_back(1.0F + static_cast<float>(d));
  layout.write_nearest(weights.data(), row.data());
  float* const state = layout.state_of(row.data());
  for (std::int64_t i = 0; i < layout.state_floats; ++i) {
    const bool padding = layout.state_floats > 1 && i % layout.padded_dim >= layout.dim;
    state[i] = padding ? 0.0F : -1.0F - static_cast<float>(i);
  }
  return row;
}

TEST(RowLayout, PackedAndUnpackedARowIsWhatItWas) {
  for (const std::int64_t dim : {1, 2, 3, 4, 5, 8, 13, 64}) {
    for (const FloatType weights : {kFp32, kBf16, kFp16}) {
      for (const RowOptimizerType optimizer : {kSgd, kAdagrad, kRowwiseAdagrad, kAdam, kFtrl}) {
        const RowLayout layout = RowLayout::of(dim, weights, optimizer);
        const std::vector<std::byte> row = some_row(layout);
        std::vector<std::byte> packed(static_cast<std::size_t>(layout.packed_bytes()),
                                      std::byte{0xEE});
        std::vector<std::byte> back(row.size(), std::byte{0xEE});
        layout.pack(row.data(), packed.data());
        layout.unpack(packed.data(), back.data());
        EXPECT_EQ(back, row) << dim << ' ' << name_of(weights) << ' ' << name_of(optimizer);
      }
    }
  }
}

TEST(RowHeader, CountsUpdatesUpToTheMost) {
  RowHeader header{static_cast<Key>(1), 0, kMaxCount - 1};
  note_update(header, 9);
  EXPECT_EQ(header.last_step, 9U);
  EXPECT_EQ(header.count, kMaxCount);
  note_update(header, 10);
  EXPECT_EQ(header.count, kMaxCount);
}

}  // namespace
}  // namespace satrap
