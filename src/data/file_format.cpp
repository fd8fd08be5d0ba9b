#include "src/data/file_format.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "satrap/core/error.h"

namespace satrap::data {
namespace {

struct Suffix {
  std::string_view text;
  FileFormat format;
};

constexpr std::array<Suffix, 11> kSuffixes{{{".jsonl", FileFormat::kJson},
                                            {".ndjson", FileFormat::kJson},
                                            {".json", FileFormat::kJson},
                                            {".libsvm", FileFormat::kLibsvm},
                                            {".svm", FileFormat::kLibsvm},
                                            {".libffm", FileFormat::kLibffm},
                                            {".ffm", FileFormat::kLibffm},
                                            {".parquet", FileFormat::kParquet},
                                            {".arrow", FileFormat::kArrow},
                                            {".feather", FileFormat::kArrow},
                                            {".ipc", FileFormat::kArrow}}};

FileFormat format_of_name(std::string_view name) {
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (name.ends_with(packed)) name.remove_suffix(packed.size());
  }
  const auto found = std::ranges::find_if(
      kSuffixes, [&](const Suffix& suffix) { return name.ends_with(suffix.text); });
  return found == kSuffixes.end() ? FileFormat::kDelimited : found->format;
}

}  // namespace

std::string name_of(FileFormat format) {
  switch (format) {
    case FileFormat::kJson:
      return "JSON lines";
    case FileFormat::kLibsvm:
      return "libsvm";
    case FileFormat::kLibffm:
      return "libffm";
    case FileFormat::kParquet:
      return "Parquet";
    case FileFormat::kArrow:
      return "Arrow";
    default:
      return "text in columns";
  }
}

FileFormat format_of(const std::string& format, const std::string& pattern) {
  if (format == "json") return FileFormat::kJson;
  if (format == "libsvm") return FileFormat::kLibsvm;
  if (format == "libffm") return FileFormat::kLibffm;
  if (format == "parquet") return FileFormat::kParquet;
  if (format == "arrow") return FileFormat::kArrow;
  return format == "auto" ? format_of_name(pattern) : FileFormat::kDelimited;
}

FileFormat format_of(const std::string& format, const FileList& files) {
  const DataFile& first = files.files.front();
  const FileFormat found = format_of(format, first.path);
  for (const DataFile& file : files.files) {
    const FileFormat other = format_of(format, file.path);
    if (other == found) continue;
    throw Error(ErrorCode::kInvalidConfig,
                concat("by their names '", first.path, "' is ", name_of(found), " and '", file.path,
                       "' is ", name_of(other), ": the files of data.train, and those of ",
                       "data.eval, are of one format; data.format says which, if names do not"));
  }
  if (is_columnar(found) && !files.rereadable) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("'", first.path, "': ", name_of(found),
                       " is read from files alone, because ", "its description stands at the end"));
  }
  return found;
}

}  // namespace satrap::data
