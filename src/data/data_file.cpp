#include "satrap/data/data_file.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>

#include "satrap/core/file.h"
#include "satrap/core/hash.h"
#include "satrap/data/topic.h"
#include "src/data/file_list.h"
#include "src/data/random_file.h"

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

std::vector<DataFile> without_folder(std::vector<DataFile> files, const std::string& folder) {
  for (DataFile& file : files) file.path = satrap::without_folder(file.path, folder);
  return files;
}

std::vector<DataFile> list_training_files(const DataConfig& config) {
  if (config.resolved_format() == "synthetic" || reads_topic(config)) return {};
  return without_folder(list_files(config.train.path).files, config.folder);
}

}  // namespace satrap::data
