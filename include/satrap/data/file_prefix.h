#pragma once

#include <cstdint>
#include <string>

namespace satrap::data {

/// How many bytes at the beginning, and how many at the end, a checksum covers.
inline constexpr std::int64_t kChecksumBytes = std::int64_t{64} << 10;

/// The first bytes of a file, which are all of it, or all it once was.
struct FilePrefix {
  /// XXH3, in hex, of its first and its last kChecksumBytes; of everything if it is no longer than
  /// both. Two reads, whatever its size.
  std::string checksum;
  /// Bytes that follow begin a new line. Taken to be true of compressed files.
  bool ends_line = false;
};

/// Throws Error(kIo) naming the file if it cannot be read or has fewer than `bytes` bytes.
FilePrefix examine_prefix(const std::string& path, std::int64_t bytes);

}  // namespace satrap::data
