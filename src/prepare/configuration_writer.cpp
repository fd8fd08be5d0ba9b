#include "src/prepare/configuration_writer.h"

#include <filesystem>

#include "satrap/core/file.h"
#include "src/prepare/configurations.h"

namespace satrap::prepare {

std::vector<std::string> write_configurations(const std::string& set, const std::string& folder) {
  std::vector<std::string> kept;
  for (const ConfigurationFile& file : configuration_files()) {
    if (file.set != set) continue;
    const std::string name(file.name), path = folder + "/" + name;
    if (!std::filesystem::exists(path)) {
      write_file_atomic(path, file.text);
    } else if (read_file(path) != file.text) {
      kept.push_back(name);
    }
  }
  return kept;
}

void remove_configurations(const std::string& set, const std::string& folder) {
  for (const ConfigurationFile& file : configuration_files()) {
    const std::string path = folder + "/" + std::string(file.name);
    if (file.set == set && std::filesystem::exists(path) && read_file(path) == file.text) {
      remove_all(path);
    }
  }
}

}  // namespace satrap::prepare
