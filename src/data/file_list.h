#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "satrap/data/data_file.h"

namespace satrap::data {

/// The files of one epoch, in reading order.
struct FileList {
  std::vector<DataFile> files;
  std::int64_t total_bytes = 0;  // 0 if unknown, as for standard input
  bool rereadable = true;        // false with standard input or a pipe: one pass only

  std::vector<std::string> paths() const;
};

/// Expands `patterns` in order. A pattern is "-" (standard input, only alone), the name of an
/// existing file, or a glob; the matches of a glob are sorted naturally: day_2 before day_10.
/// Throws Error(kIo) for a missing file, a glob without a match, a directory, an empty file.
FileList list_files(const std::vector<std::string>& patterns);

/// Size and time of the file `path`, which is no directory. Throws Error(kIo) if there is none.
DataFile describe_file(const std::string& path);

/// Natural order: runs of digits compare as numbers.
bool natural_less(const std::string& a, const std::string& b);

}  // namespace satrap::data
