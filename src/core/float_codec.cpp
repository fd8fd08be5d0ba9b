#include "satrap/net/payload_codec.h"

#include <cstring>

#include "satrap/core/error.h"
#include "satrap/core/half.h"

namespace satrap::net {
namespace {

template <class Half>
void encode(std::span<const float> values, std::byte* out) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Half half;
    round_to_nearest(values[i], half);
    std::memcpy(out + sizeof(half) * i, &half, sizeof(half));
  }
}

template <class Half>
void decode(const std::byte* bytes, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Half half;
    std::memcpy(&half, bytes + sizeof(half) * i, sizeof(half));
    out[i] = to_float(half);
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
      encode<Bf16>(values, out.data());
      return;
    case FloatEncoding::kFp16:
      encode<Fp16>(values, out.data());
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
      decode<Bf16>(bytes.data(), out);
      return;
    case FloatEncoding::kFp16:
      decode<Fp16>(bytes.data(), out);
      return;
  }
}

}  // namespace satrap::net
