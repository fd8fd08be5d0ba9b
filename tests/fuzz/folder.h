#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <unistd.h>

#include "tests/fuzz/fuzz.h"

namespace satrap::fuzz {

/// A folder for the files of one process, in memory where the system has such a place.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(std::filesystem::path(std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp") /
              ("satrap-fuzz-" + std::to_string(getpid())) / name) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_.parent_path()); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  void write(const std::string& name, std::string_view content) const {
    std::ofstream file(path_ / name, std::ios::binary | std::ios::trunc);
    if (!file.write(content.data(), std::ssize(content))) fail("a file cannot be written");
  }
  void clear() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      std::filesystem::remove_all(entry);
    }
  }
  std::string path() const { return path_.string(); }
  std::string parent() const { return path_.parent_path().string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace satrap::fuzz
