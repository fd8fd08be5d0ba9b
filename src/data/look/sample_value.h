#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace satrap::data {

/// The most bytes that a sample has of a value, and of all of them: compressed files may hold
/// far more than they seem to.
inline constexpr std::size_t kMaxValueBytes = std::size_t{64} << 10;
inline constexpr std::int64_t kMaxSampleBytes = std::int64_t{128} << 20;

/// The value as a sample has it: its first kMaxValueBytes, in whole characters of UTF-8.
inline std::string sampled_value(std::string_view text) {
  if (text.size() <= kMaxValueBytes) return std::string(text);
  std::size_t size = kMaxValueBytes;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) --size;
  return std::string(text.substr(0, size));
}

}  // namespace satrap::data
