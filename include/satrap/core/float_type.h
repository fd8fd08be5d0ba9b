#pragma once

#include <cstdint>
#include <type_traits>

#include "satrap/core/error.h"
#include "satrap/core/half.h"

namespace satrap {

/// How the weights of a table's rows are stored. They are computed with as floats; after an update
/// those of 16 bits are rounded stochastically.
enum class WeightType : std::uint8_t { kFp32, kBf16, kFp16 };

/// As configurations and checkpoints call them, in the order of the enumerators.
inline constexpr const char* kWeightTypeNames[] = {"fp32", "bf16", "fp16"};
constexpr const char* name_of(WeightType type) { return kWeightTypeNames[static_cast<int>(type)]; }

constexpr std::int64_t bytes_of(WeightType type) { return type == WeightType::kFp32 ? 4 : 2; }

/// Calls function(std::type_identity<T>), T = float, Bf16 or Fp16, outside of the loop over rows.
template <class Function>
decltype(auto) with_weight_type(WeightType type, Function&& function) {
  switch (type) {
    case WeightType::kFp32:
      return function(std::type_identity<float>{});
    case WeightType::kBf16:
      return function(std::type_identity<Bf16>{});
    case WeightType::kFp16:
      return function(std::type_identity<Fp16>{});
  }
  SATRAP_CHECK(false, "weight type ", static_cast<int>(type));
}

}  // namespace satrap
