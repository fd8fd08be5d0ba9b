#pragma once

#include <cstdint>
#include <type_traits>

#include "satrap/core/error.h"
#include "satrap/core/half.h"

namespace satrap {

/// How floats are stored and sent: weights of rows, pooled rows, gradients. Arithmetic is always
/// fp32. bf16 keeps the range and 8 bits of precision, fp16 11 bits within +-65504. Checkpoints and
/// messages use the enumerators' numbers.
enum class FloatType : std::uint8_t { kFp32, kBf16, kFp16 };

/// Names in configurations and checkpoints, in the order of the enumerators.
inline constexpr const char* kFloatTypeNames[] = {"fp32", "bf16", "fp16"};
constexpr const char* name_of(FloatType type) { return kFloatTypeNames[static_cast<int>(type)]; }

constexpr std::int64_t bytes_of(FloatType type) { return type == FloatType::kFp32 ? 4 : 2; }

/// Calls function(std::type_identity<T>), T = float, Bf16 or Fp16, outside the loop over rows.
template <class Function>
decltype(auto) with_float_type(FloatType type, Function&& function) {
  if (type == FloatType::kFp32) return function(std::type_identity<float>{});
  if (type == FloatType::kBf16) return function(std::type_identity<Bf16>{});
  SATRAP_CHECK(type == FloatType::kFp16, "float type ", static_cast<int>(type));
  return function(std::type_identity<Fp16>{});
}

}  // namespace satrap
