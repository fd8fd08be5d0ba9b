#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "satrap/data/config.h"

namespace satrap::data {

/// A file of the training data: what it was when it was listed or, once it was opened, what was
/// read. Times and sizes are those on disk, of compressed files the compressed ones.
struct DataFile {
  std::string path;              // of a glob: the match
  std::int64_t bytes = -1;       // -1: standard input or a pipe, which have no identity
  std::int64_t modified_ns = 0;  // since 1970
  std::string checksum = {};     // FilePrefix::checksum of all its bytes; "": never opened
  std::int64_t first_row = -1;   // number within the epoch; -1: unknown
  std::int64_t num_rows = -1;    // -1: not read to its end

  bool is_regular() const { return bytes >= 0; }
  bool was_opened() const { return !checksum.empty(); }
  friend bool operator==(const DataFile&, const DataFile&) = default;
};

/// What has become known of one of several files.
struct FileNote {
  std::int64_t number = 0;  // of the file in their list
  DataFile file;
  friend bool operator==(const FileNote&, const FileNote&) = default;
};

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

/// The same with paths as a record has them: those in `folder` without it.
std::vector<DataFile> without_folder(std::vector<DataFile> files, const std::string& folder);

/// The training files as they are now, in reading order, none opened; empty if the rows are
/// generated or of a topic. Paths are those of a record. Throws as open_batches does.
std::vector<DataFile> list_training_files(const DataConfig& config);

}  // namespace satrap::data
