#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "satrap/core/float_type.h"

namespace satrap {

/// Arrays of floats as bytes of a FloatType. Rounds to nearest even; values that are too large
/// become infinite, NaN stays NaN.
void encode_floats(FloatType type,
                   std::span<const float> values,  // [n]
                   std::span<std::byte> out);      // [n * bytes_of(type)]
void decode_floats(FloatType type,
                   std::span<const std::byte> bytes,  // [n * bytes_of(type)]
                   std::span<float> out);             // [n]

}  // namespace satrap
