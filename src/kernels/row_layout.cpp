#include "satrap/kernels/row_layout.h"

#include <algorithm>
#include <cstring>

#include "satrap/core/error.h"
#include "satrap/kernels/dims.h"

namespace satrap {
namespace {

constexpr std::int64_t kFloatBytes = sizeof(float);

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

RowLayout RowLayout::of(std::int64_t dim, FloatType weight_type, RowOptimizerType optimizer) {
  SATRAP_CHECK(dim >= 0, "a row of ", dim, " weights");
  constexpr std::int64_t kSector = 32;
  RowLayout layout;
  layout.dim = dim;
  layout.padded_dim = satrap::padded_dim(dim);
  layout.weight_type = weight_type;
  layout.state_offset = kWeightsOffset + round_up(layout.padded_dim * bytes_of(weight_type), kUnit);
  layout.state_floats = satrap::state_floats(optimizer, dim);
  layout.row_bytes = layout.state_offset + round_up(layout.state_floats * kFloatBytes, kUnit);
  layout.device_stride = round_up(layout.row_bytes, kSector);
  return layout;
}

void RowLayout::to_device(const std::byte* row, std::byte* device_row) const {
  const std::size_t rest = index(row_bytes - kUnit);
  std::memcpy(device_row, row + kUnit, rest);
  std::memcpy(device_row + rest, row, kUnit);
}

void RowLayout::from_device(const std::byte* device_row, std::byte* row) const {
  const std::size_t rest = index(row_bytes - kUnit);
  std::memcpy(row + kUnit, device_row, rest);
  std::memcpy(row, device_row + rest, kUnit);
}

void RowLayout::read_weights(const std::byte* row, float* out) const {
  with_float_type(weight_type, [&]<class Weight>(std::type_identity<Weight>) {
    const auto* from = reinterpret_cast<const Weight*>(row + kWeightsOffset);
    for (std::int64_t d = 0; d < dim; ++d) out[d] = to_float(from[d]);
  });
}

void RowLayout::write_weights(const float* values,
                              std::uint64_t rounding_seed,
                              std::byte* row) const {
  std::byte* const to = row + kWeightsOffset;
  with_float_type(weight_type, [&]<class Weight>(std::type_identity<Weight>) {
    if constexpr (std::is_same_v<Weight, float>) {
      std::memcpy(to, values, index(dim * kFloatBytes));
    } else {
      const RandomStream random =
          rounding_stream(rounding_seed, reinterpret_cast<const RowHeader*>(row)->key);
      auto* const out = reinterpret_cast<Weight*>(to);
      for (std::int64_t d = 0; d < dim; ++d) {
        const std::uint64_t four = random.bits(static_cast<std::uint64_t>(d) / 4);
        round_stochastically(values[d], rounding_bits(four, d), out[d]);
      }
    }
  });
}

void RowLayout::write_nearest(const float* values, std::byte* row) const {
  with_float_type(weight_type, [&]<class Weight>(std::type_identity<Weight>) {
    auto* const out = reinterpret_cast<Weight*>(row + kWeightsOffset);
    for (std::int64_t d = 0; d < dim; ++d) round_to_nearest(values[d], out[d]);
  });
}

/// Calls copy(offset in the row, offset in the packed row, bytes) for each part without padding.
template <class Copy>
void RowLayout::for_each_part(Copy&& copy) const {
  const std::int64_t weight_bytes = dim * bytes_of(weight_type);
  copy(0, 0, kWeightsOffset + weight_bytes);
  std::int64_t packed = kWeightsOffset + round_up(weight_bytes, kFloatBytes);
  const std::int64_t arrays = state_floats / std::max<std::int64_t>(1, padded_dim);
  for (std::int64_t a = 0; a < arrays && state_floats > 1; ++a, packed += dim * kFloatBytes) {
    copy(state_offset + a * padded_dim * kFloatBytes, packed, dim * kFloatBytes);
  }
  if (state_floats == 1) copy(state_offset, packed, kFloatBytes);
}

std::int64_t RowLayout::packed_bytes() const {
  std::int64_t end = kWeightsOffset + round_up(dim * bytes_of(weight_type), kFloatBytes);
  for_each_part([&](std::int64_t, std::int64_t packed, std::int64_t bytes) {
    end = std::max(end, packed + bytes);
  });
  return end;
}

void RowLayout::pack(const std::byte* row, std::byte* packed) const {
  std::memset(packed, 0, index(packed_bytes()));
  for_each_part([&](std::int64_t from, std::int64_t to, std::int64_t bytes) {
    std::memcpy(packed + to, row + from, index(bytes));
  });
}

void RowLayout::unpack(const std::byte* packed, std::byte* row) const {
  std::memset(row, 0, index(row_bytes));
  for_each_part([&](std::int64_t to, std::int64_t from, std::int64_t bytes) {
    std::memcpy(row + to, packed + from, index(bytes));
  });
}

}  // namespace satrap
