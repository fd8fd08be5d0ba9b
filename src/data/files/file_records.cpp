#include "src/data/files/file_records.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/data/file_prefix.h"
#include "src/data/files/file_list.h"

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

void warn_if_changed(const DataFile& before, const DataFile& current) {
  if (!before.was_opened()) return;
  if (current.bytes == before.bytes && current.checksum == before.checksum) return;
  log_warning("data file '{}' has changed since it was last read: {} bytes -> {} bytes",
              before.path, before.bytes, current.bytes);
}

/// Warns if the file is no longer what it was when it was opened. Returns it as it is now if it has
/// only grown.
std::optional<DataFile> check_unchanged(const DataFile& before) {
  const std::optional<DataFile> current = now(before.path);
  if (current && current->bytes == before.bytes && current->modified_ns == before.modified_ns) {
    return std::nullopt;
  }
  if (!current) {
    log_warning("data file '{}' was removed while it was read", before.path);
    return std::nullopt;
  }
  const bool begins_alike = current->bytes >= before.bytes && with_checksum(before) == before;
  if (begins_alike && current->bytes > before.bytes) {
    std::optional<DataFile> grown = with_checksum(*current);
    if (grown) {
      log_warning("data file '{}' has grown while it was read: {} bytes -> {} bytes", before.path,
                  before.bytes, grown->bytes);
      grown->first_row = before.first_row;
    }
    return grown;
  }
  if (!begins_alike) {
    log_warning(
        "data file '{}' has changed while it was read: {} bytes -> {} bytes; it is "
        "not known what was read of it, and --resume will ask for --accept-changed-data",
        before.path, before.bytes, current->bytes);
  } else if (before.bytes > 2 * kChecksumBytes) {
    log_warning(
        "data file '{}' was modified while it was read; its size, beginning and end are "
        "the same",
        before.path);
  }
  return std::nullopt;
}

}  // namespace

DataFile FileRecords::noted(std::size_t file) const {
  const MutexLock lock(mutex_);
  return files_[file];
}

void FileRecords::begin(std::size_t file, std::int64_t first_row) {
  const DataFile before = noted(file);
  std::optional<DataFile> current;
  if (before.is_regular()) current = now(before.path);
  if (current) current = with_checksum(*current);
  if (current) warn_if_changed(before, *current);
  const MutexLock lock(mutex_);
  ++num_changes_;
  if (current) files_[file] = std::move(*current);
  files_[file].first_row = first_row;
}

void FileRecords::end(std::size_t file, std::int64_t end_row) {
  const DataFile before = noted(file);
  const std::optional<DataFile> grown =
      before.was_opened() ? check_unchanged(before) : std::nullopt;
  const MutexLock lock(mutex_);
  ++num_changes_;
  if (grown) files_[file] = *grown;
  files_[file].num_rows = end_row - files_[file].first_row;
  // Another rank may be in the next file before this one opens it.
  if (file + 1 < files_.size()) files_[file + 1].first_row = end_row;
}

void FileRecords::take(const FileNote& note) {
  const auto number = static_cast<std::size_t>(note.number);
  if (note.number < 0 || number >= files().size()) {
    throw Error(ErrorCode::kInvalidData,
                concat("a note of file ", note.number, ", and there are ", files().size()));
  }
  const DataFile before = noted(number);
  if (note.file.was_opened()) warn_if_changed(before, note.file);
  const MutexLock lock(mutex_);
  ++num_changes_;
  DataFile& file = files_[number];
  const std::string path = file.path;
  const std::int64_t first_row = std::max(file.first_row, note.file.first_row);
  const std::int64_t num_rows = std::max(file.num_rows, note.file.num_rows);
  if (note.file.was_opened()) file = note.file;
  file.path = path;
  file.first_row = first_row;
  file.num_rows = num_rows;
}

std::int64_t FileRecords::num_changes() const {
  const MutexLock lock(mutex_);
  return num_changes_;
}

std::vector<DataFile> FileRecords::files() const {
  const MutexLock lock(mutex_);
  return files_;
}

}  // namespace satrap::data
