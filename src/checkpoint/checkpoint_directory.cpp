#include "src/checkpoint/checkpoint_directory.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace satrap::checkpoint {

void DirectoryWriter::adopt(const std::string& name) {
  FileReader reader(directory_ + "/" + name);
  std::vector<std::byte> block(std::size_t{1} << 20);
  while (!reader.at_end()) {
    const auto count = std::min(reader.size() - reader.bytes_read(), std::ssize(block));
    reader.read(std::span(block).first(static_cast<std::size_t>(count)));
  }
  manifest.files[name] = {reader.size(), to_hex(reader.checksum())};
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
