#pragma once

#include <cstdint>
#include <string>

#include "satrap/data/config.h"

namespace satrap::data {

/// How the rows of a file are written.
enum class FileFormat : std::uint8_t {
  kDelimited,  // text in columns: CSV, TSV, Criteo
  kJson,       // an object per line
  kLibsvm,     // label index:value ...
  kLibffm,     // label field:index:value ...
  kParquet,
  kArrow  // Arrow IPC files
};

/// Whether the files hold columns with their names and types, which Arrow reads.
inline bool is_columnar(FileFormat format) {
  return format == FileFormat::kParquet || format == FileFormat::kArrow;
}

/// "JSON lines", for people.
std::string name_of(FileFormat format);

/// The format of one pattern of a configuration (a file or a glob): data.format, else by its name.
FileFormat format_of(DataFormat format, const std::string& pattern);

}  // namespace satrap::data
