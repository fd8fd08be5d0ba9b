#include "satrap/data/file_prefix.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>

#include "satrap/core/hash.h"
#include "src/data/files/random_file.h"

namespace satrap::data {
namespace {

bool is_compressed(std::string_view head) {
  return head.starts_with("\x1F\x8B") || head.starts_with("\x28\xB5\x2F\xFD") ||
         (head.size() >= 4 && head.substr(1, 3) == "\x2A\x4D\x18");  // a skippable frame of zstd
}

}  // namespace

FilePrefix examine_prefix(const std::string& path, std::int64_t bytes) {
  const std::shared_ptr<const RandomFile> file = open_random_file(path);
  const std::int64_t head = std::min(bytes, kChecksumBytes);
  const std::int64_t tail = std::max(head, bytes - kChecksumBytes);
  std::string text(static_cast<std::size_t>(head + bytes - tail), '\0');
  file->read(0, std::span(text).first(static_cast<std::size_t>(head)));
  file->read(tail, std::span(text).subspan(static_cast<std::size_t>(head)));
  return {to_hex(hash_bytes(text)), is_compressed(text) || text.ends_with('\n')};
}

}  // namespace satrap::data
