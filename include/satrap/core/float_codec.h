#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace satrap::net {

/// How floats travel. bf16 keeps the range and 8 bits of precision, fp16 11 bits within +-65504
/// (larger magnitudes become infinite). Rounding is to nearest even, NaN stays NaN.
enum class FloatEncoding : std::uint8_t { kFp32, kBf16, kFp16 };

/// Bytes of `count` floats.
constexpr std::int64_t encoded_bytes(FloatEncoding encoding, std::int64_t count) {
  return count * (encoding == FloatEncoding::kFp32 ? 4 : 2);
}

void encode_floats(FloatEncoding encoding,
                   std::span<const float> values,  // [n]
                   std::span<std::byte> out);      // [encoded_bytes(encoding, n)]
void decode_floats(FloatEncoding encoding,
                   std::span<const std::byte> bytes,  // [encoded_bytes(encoding, n)]
                   std::span<float> out);             // [n]

}  // namespace satrap::net
