#include "src/checkpoint/checkpoint_directory.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace satrap::checkpoint {

void DirectoryWriter::adopt(const std::string& name) {
  const std::string path = directory_ + "/" + name;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path));
  FileReader reader(path);
  std::vector<std::byte> block(std::size_t{1} << 20);
  for (std::int64_t left = size; left > 0;) {
    const auto count = std::min(left, std::ssize(block));
    reader.read(std::span(block).first(static_cast<std::size_t>(count)));
    left -= count;
  }
  manifest.files[name] = {size, to_hex(reader.checksum())};
}

void DirectoryWriter::finish() {
  FileWriter writer(directory_ + "/" + kManifestFile);
  const std::string json = manifest.to_json();
  writer.write(std::as_bytes(std::span(json)));
  writer.finish();
  fsync_directory(directory_);
}

std::string temporary_path(const std::string& directory, const std::string& name) {
  return directory + "/" + kTemporaryPrefix + name;
}

}  // namespace satrap::checkpoint
