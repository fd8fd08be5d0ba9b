#pragma once

#include <cstring>
#include <vector>

#include "satrap/backend/cache.h"
#include "tests/backend/host_plan.h"
#include "tests/support/small_floats.h"

namespace satrap::testing {

inline const SmallFloat& small_float(FloatType type) {
  return type == FloatType::kBf16 ? kBfloat16 : kHalf;
}

/// Element i of an array of the type, as float; and the reverse, for a representable number.
inline float get_float(FloatType type, const std::byte* array, std::int64_t i) {
  if (type == FloatType::kFp32) {
    float x = 0.0F;
    std::memcpy(&x, array + i * 4, 4);
    return x;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, array + i * 2, 2);
  return from_bits(small_float(type), bits);
}
inline void put_float(FloatType type, std::byte* array, std::int64_t i, float x) {
  if (type == FloatType::kFp32) {
    std::memcpy(array + i * 4, &x, 4);
    return;
  }
  const std::uint16_t bits = to_bits(small_float(type), x);
  std::memcpy(array + i * 2, &bits, 2);
}
inline float rounded(FloatType type, float x) {
  return type == FloatType::kFp32 ? x : round_nearest(small_float(type), x);
}

/// Random numbers of the given type.
inline std::vector<std::byte> random_floats(FloatType type, std::int64_t n, Random& random) {
  std::vector<std::byte> array(static_cast<std::size_t>(n * bytes_of(type)));
  for (std::int64_t i = 0; i < n; ++i) {
    put_float(type, array.data(), i, rounded(type, random.uniform(-1.0F, 1.0F)));
  }
  return array;
}

/// All rows of a cache, random: padding is zero, state is positive.
inline std::vector<std::byte> random_rows(const RowLayout& layout,
                                          std::int64_t num_rows,
                                          Random& random) {
  std::vector<std::byte> rows(static_cast<std::size_t>(num_rows * layout.device_stride));
  for (std::int64_t r = 0; r < num_rows; ++r) {
    std::byte* row = rows.data() + r * layout.device_stride;
    for (std::int64_t d = 0; d < layout.dim; ++d) {
      put_float(layout.weight_type, row, d,
                rounded(layout.weight_type, random.uniform(-1.0F, 1.0F)));
    }
    for (std::int64_t i = 0; i < layout.state_floats; ++i) {
      const bool padding = layout.state_floats > 1 && i % layout.padded_dim >= layout.dim;
      put_float(FloatType::kFp32, row + layout.device_state_offset(), i,
                padding ? 0.0F : random.uniform(0.0F, 1.0F));
    }
    const RowHeader header{static_cast<Key>(random.below(1 << 30)),
                           static_cast<std::uint32_t>(random.below(100)),
                           static_cast<std::uint32_t>(random.below(100))};
    std::memcpy(row + layout.device_header_offset(), &header, sizeof(header));
  }
  return rows;
}

/// Distinct random slots for n keys, some of them none.
inline std::vector<std::int32_t> random_slots(std::int64_t n,
                                              std::int64_t total,
                                              bool some_missing,
                                              Random& random) {
  std::vector<std::int32_t> slots(static_cast<std::size_t>(total));
  for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<std::int32_t>(i);
  for (std::size_t i = slots.size(); i > 1; --i) {
    std::swap(slots[i - 1],
              slots[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  }
  slots.resize(static_cast<std::size_t>(n));
  if (some_missing) {
    for (auto& slot : slots) slot = random.below(8) == 0 ? -1 : slot;
  }
  return slots;
}

template <class T>
void upload(const std::vector<T>& values, void* to) {
  const backend::Stream stream(device());
  device().copy(to, values.data(), static_cast<std::int64_t>(values.size() * sizeof(T)), stream);
  stream.wait_until_idle();
}

}  // namespace satrap::testing
