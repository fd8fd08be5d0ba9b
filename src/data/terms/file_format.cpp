#include "src/data/terms/file_format.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "satrap/data/file_name.h"

namespace satrap::data {
namespace {

struct Format {
  FileFormat format;
  DataFormat key;
  std::string_view title;  // for people
  std::array<std::string_view, 3> suffixes = {};
};

constexpr Format kFormats[] = {
    {FileFormat::kDelimited, DataFormat::kCsv, "text in columns"},
    {FileFormat::kJson, DataFormat::kJson, "JSON lines", {".jsonl", ".ndjson", ".json"}},
    {FileFormat::kLibsvm, DataFormat::kLibsvm, "libsvm", {".libsvm", ".svm"}},
    {FileFormat::kLibffm, DataFormat::kLibffm, "libffm", {".libffm", ".ffm"}},
    {FileFormat::kParquet, DataFormat::kParquet, "Parquet", {".parquet"}},
    {FileFormat::kArrow, DataFormat::kArrow, "Arrow", {".arrow", ".feather", ".ipc"}},
};

constexpr std::string_view kPacked[] = {".gz", ".zst"};

/// The format that names its files so; null: none does.
const Format* find_format(std::string_view name) {
  for (const Format& format : kFormats) {
    for (const std::string_view suffix : format.suffixes) {
      if (!suffix.empty() && name.ends_with(suffix)) return &format;
    }
  }
  return nullptr;
}

FileFormat format_of_name(std::string_view name) {
  for (const std::string_view packed : kPacked) {
    if (name.ends_with(packed)) name.remove_suffix(packed.size());
  }
  const Format* const found = find_format(name);
  return found == nullptr ? FileFormat::kDelimited : found->format;
}

}  // namespace

bool is_data_name(std::string_view name) {
  const auto ends_name = [&](std::string_view ending) { return name.ends_with(ending); };
  constexpr std::string_view kDelimited[] = {".csv", ".tsv", ".txt", ".data"};
  return std::ranges::any_of(kPacked, ends_name) || std::ranges::any_of(kDelimited, ends_name) ||
         find_format(name) != nullptr;
}

std::string name_of(FileFormat format) {
  return std::string(std::ranges::find(kFormats, format, &Format::format)->title);
}

FileFormat format_of(DataFormat format, const std::string& pattern) {
  if (format == DataFormat::kAuto) return format_of_name(pattern);
  const auto* const found = std::ranges::find(kFormats, format, &Format::key);
  return found == std::end(kFormats) ? FileFormat::kDelimited : found->format;
}

}  // namespace satrap::data
