#pragma once

#include <string>
#include <utility>

#include "satrap/checkpoint/checkpoint_format.h"
#include "satrap/core/file.h"

namespace satrap::checkpoint {

/// Writes the files of one checkpoint to an existing directory and lists them in its manifest.
class DirectoryWriter {
 public:
  explicit DirectoryWriter(std::string directory) : directory_(std::move(directory)) {}

  const std::string& directory() const { return directory_; }

  /// Creates a file, which `fill` writes to.
  template <class Fill>
  void file(const std::string& name, Fill&& fill) {
    FileWriter writer(directory_ + "/" + name);
    fill(writer);
    finish(name, writer);
  }

  /// Finishes a file of this directory that was written in pieces.
  void finish(const std::string& name, FileWriter& writer) {
    writer.finish();
    manifest.files[name] = {writer.bytes_written(), to_hex(writer.checksum())};
  }

  /// Adds a file that another process has written.
  void adopt(const std::string& name);

  /// Writes the manifest: the checkpoint is complete.
  void finish();

  Manifest manifest;

 private:
  std::string directory_;
};

/// The path at which a checkpoint of `name` is written before it is published in `directory`.
std::string temporary_path(const std::string& directory, const std::string& name);

}  // namespace satrap::checkpoint
