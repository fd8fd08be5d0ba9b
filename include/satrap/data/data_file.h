#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

/// A fact about one of several files, found while it was read.
struct FileNote {
  std::int64_t number = 0;  // of the file in their list
  DataFile file;
  friend bool operator==(const FileNote&, const FileNote&) = default;
};

/// `files` with paths as a record has them: those in `folder` without it.
std::vector<DataFile> without_folder(std::vector<DataFile> files, const std::string& folder);

}  // namespace satrap::data
