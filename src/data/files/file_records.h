#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "satrap/core/mutex.h"
#include "satrap/data/data_file.h"

namespace satrap::data {

/// The known facts of each file of an epoch, over all passes. A reader notes each file before it
/// opens it and once it has read it to its end; what it noted first is what was read. Thread-safe.
class FileRecords {
 public:
  explicit FileRecords(std::vector<DataFile> files) : files_(std::move(files)) {}

  /// `first_row` is the number of the file's first row. Warns if an earlier pass read other
  /// content. Does not complain of a file that is missing: that is up to its reader.
  void begin(std::size_t file, std::int64_t first_row);

  /// `end_row` is the number after that of its last row. Warns if the file has changed meanwhile:
  /// of one that has only grown, the rows at its end have been read too, and it is noted as it is
  /// now; of any other nobody knows what was read, so it remains noted as it was.
  void end(std::size_t file, std::int64_t end_row);

  /// Takes the note of another process that has read rows of this epoch. Warns as
  /// begin() does.
  void take(const FileNote& note);

  std::vector<DataFile> files() const;

  /// Counts up whenever files() changes.
  std::int64_t num_changes() const;

 private:
  DataFile noted(std::size_t file) const;

  mutable Mutex mutex_;
  std::vector<DataFile> files_ SATRAP_GUARDED_BY(mutex_);
  std::int64_t num_changes_ SATRAP_GUARDED_BY(mutex_) = 0;
};

}  // namespace satrap::data
