#include "satrap/core/float_codec.h"

#include <cstring>

namespace satrap {
namespace {

void check_sizes(FloatType type, std::size_t bytes, std::size_t count) {
  SATRAP_CHECK(bytes == count * static_cast<std::size_t>(bytes_of(type)), bytes, " bytes for ",
               count, " floats");
}

}  // namespace

void encode_floats(FloatType type, std::span<const float> values, std::span<std::byte> out) {
  check_sizes(type, out.size(), values.size());
  with_float_type(type, [&]<class Float>(std::type_identity<Float>) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      Float value;
      round_to_nearest(values[i], value);
      std::memcpy(out.data() + sizeof(value) * i, &value, sizeof(value));
    }
  });
}

void decode_floats(FloatType type, std::span<const std::byte> bytes, std::span<float> out) {
  check_sizes(type, bytes.size(), out.size());
  with_float_type(type, [&]<class Float>(std::type_identity<Float>) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      Float value;
      std::memcpy(&value, bytes.data() + sizeof(value) * i, sizeof(value));
      out[i] = to_float(value);
    }
  });
}

}  // namespace satrap
