#include "satrap/net/payload_codec.h"

#include <bit>
#include <cstring>

#include "satrap/core/error.h"

namespace satrap::net {
namespace {

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// _Float16 of GCC and Clang: IEEE 754 binary16, converted by one instruction where there is one.
std::uint16_t to_fp16(float value) {
  return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
}
float from_fp16(std::uint16_t bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }

template <class Convert>
void encode(std::span<const float> values, std::byte* out, Convert convert) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t half = convert(values[i]);
    std::memcpy(out + 2 * i, &half, sizeof(half));
  }
}

template <class Convert>
void decode(const std::byte* bytes, std::span<float> out, Convert convert) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, bytes + 2 * i, sizeof(half));
    out[i] = convert(half);
  }
}

void check_sizes(FloatEncoding encoding, std::size_t bytes, std::size_t count) {
  SATRAP_CHECK(
      static_cast<std::int64_t>(bytes) == encoded_bytes(encoding, static_cast<std::int64_t>(count)),
      bytes, " bytes for ", count, " floats");
}

}  // namespace

void encode_floats(FloatEncoding encoding,
                   std::span<const float> values,
                   std::span<std::byte> out) {
  check_sizes(encoding, out.size(), values.size());
  switch (encoding) {
    case FloatEncoding::kFp32:
      if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
      return;
    case FloatEncoding::kBf16:
      encode(values, out.data(), to_bf16);
      return;
    case FloatEncoding::kFp16:
      encode(values, out.data(), to_fp16);
      return;
  }
}

void decode_floats(FloatEncoding encoding, std::span<const std::byte> bytes, std::span<float> out) {
  check_sizes(encoding, bytes.size(), out.size());
  switch (encoding) {
    case FloatEncoding::kFp32:
      if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
      return;
    case FloatEncoding::kBf16:
      decode(bytes.data(), out, from_bf16);
      return;
    case FloatEncoding::kFp16:
      decode(bytes.data(), out, from_fp16);
      return;
  }
}

}  // namespace satrap::net
