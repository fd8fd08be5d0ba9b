#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "satrap/data/data_file.h"
#include "src/data/terms/file_format.h"

namespace satrap::data {

/// The files of one epoch, in reading order.
struct FileList {
  std::vector<DataFile> files;
  std::int64_t total_bytes = 0;  // 0 if unknown, as for standard input
  bool rereadable = true;        // false with standard input or a pipe: one pass only

  std::vector<std::string> paths() const;
  void add(DataFile file);
};

/// Expands `patterns` in order. A pattern is "-" (standard input, only alone), the name of an
/// existing file, or a glob; the matches of a glob are sorted naturally: day_2 before day_10.
/// Throws Error(kIo) for a missing file, a glob without a match, a directory, an empty file.
FileList list_files(const std::vector<std::string>& patterns);

/// The format of all files, by data.format or else by their names. Throws Error(kInvalidConfig) if
/// they are of several, or if Parquet or Arrow is to be read from a pipe.
FileFormat format_of(DataFormat format, const FileList& files);

/// Size and time of the file `path`, which is no directory. Throws Error(kIo) if there is none.
DataFile describe_file(const std::string& path);

/// Natural order: runs of digits compare as numbers.
bool natural_less(const std::string& a, const std::string& b);

}  // namespace satrap::data
