#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>

#include "src/data/files/byte_stream.h"
#include "tests/fuzz/file.h"

namespace satrap::fuzz {

inline constexpr std::size_t kMaxUnpackedBytes = std::size_t{16} << 20;

/// The bytes of a packed file, read in pieces of `piece`; not all of them if they are many.
inline std::string unpack(const std::string& path, std::size_t piece) {
  std::atomic<std::int64_t> bytes_read{0};
  data::Interruption interruption(nullptr);
  const auto stream = data::open_byte_stream(path, bytes_read, interruption);
  std::string unpacked, buffer(piece, '\0');
  while (unpacked.size() < kMaxUnpackedBytes) {
    const std::size_t count = stream->read(buffer.data(), buffer.size());
    if (count == 0) break;
    if (count > buffer.size()) fail("more bytes than wanted");
    unpacked.append(buffer, 0, count);
  }
  return unpacked;
}

/// Reads a file with this content in small pieces and in large ones, which must give the same
/// bytes.
inline void unpack_twice(std::string_view content) {
  static const MemoryFile file;
  file.set(content);
  std::string small, large;
  const bool refused = is_refused([&] { large = unpack(file.path(), std::size_t{1} << 16); });
  const bool refused_too = is_refused([&] { small = unpack(file.path(), 61); });
  if (std::max(small.size(), large.size()) >= kMaxUnpackedBytes) return;  // not read to the end
  if (refused != refused_too) fail("refused in large pieces or in small ones, not in both");
  if (small != large) fail("other bytes in large pieces than in small ones");
}

}  // namespace satrap::fuzz
