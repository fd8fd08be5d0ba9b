#include "src/data/file_records.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "src/data/file_list.h"

namespace satrap::data {
namespace {

/// nullopt: it cannot be read.
std::optional<DataFile> with_checksum(DataFile file) {
  try {
    file.checksum = examine_prefix(file.path, file.bytes).checksum;
  } catch (const Error&) {
    return std::nullopt;
  }
  return file;
}

std::optional<DataFile> now(const std::string& path) {
  try {
    return describe_file(path);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

DataFile FileRecords::noted(std::size_t file) const {
  std::lock_guard lock(mutex_);
  return files_[file];
}

void FileRecords::begin(std::size_t file, std::int64_t first_row) {
  const DataFile before = noted(file);
  std::optional<DataFile> current;
  if (before.is_regular()) current = now(before.path);
  if (current) current = with_checksum(*current);
  if (current && before.was_opened() &&
      (current->bytes != before.bytes || current->checksum != before.checksum)) {
    log_warning("data file '{}' has changed since it was last read: {} bytes -> {} bytes",
                before.path, before.bytes, current->bytes);
  }
  std::lock_guard lock(mutex_);
  if (current) files_[file] = std::move(*current);
  files_[file].first_row = first_row;
}

void FileRecords::end(std::size_t file, std::int64_t end_row) {
  const DataFile before = noted(file);
  std::optional<DataFile> grown;
  if (before.was_opened()) {
    const std::optional<DataFile> current = now(before.path);
    if (!current || current->bytes != before.bytes || current->modified_ns != before.modified_ns) {
      if (current && current->bytes > before.bytes && with_checksum(before) == before) {
        grown = with_checksum(*current);
      }
      log_warning(
          "data file '{}' {} while it was read: {} bytes -> {} bytes{}", before.path,
          grown     ? "has grown"
          : current ? "has changed"
                    : "was removed",
          before.bytes, current ? current->bytes : 0,
          grown ? "" : "; a run that is resumed will ask whether to accept it (README: resume)");
    }
  }
  std::lock_guard lock(mutex_);
  if (grown) {
    grown->first_row = files_[file].first_row;
    files_[file] = std::move(*grown);
  }
  files_[file].num_rows = end_row - files_[file].first_row;
}

std::vector<DataFile> FileRecords::files() const {
  std::lock_guard lock(mutex_);
  return files_;
}

}  // namespace satrap::data
