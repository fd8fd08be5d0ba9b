#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "satrap/data/schema.h"
#include "src/data/columnar/parquet_files.h"
#include "src/data/files/file_list.h"
#include "src/data/files/file_records.h"
#include "src/data/rows/row_selection.h"

namespace satrap::data {

struct TextBlock;

/// A row group of a file, and where its rows are among those of the epoch.
struct ParquetGroup {
  std::shared_ptr<const MappedParquet> source;
  std::size_t file = 0;        // in the list
  std::int64_t group = -1;     // in the file; -1: none, the file is empty
  std::int64_t first_row = 0;  // number within the epoch
  std::int64_t num_rows = 0;
  std::int64_t rows_before = 0;  // of the file
  bool is_last = false;          // of the file
  std::int64_t first_byte = 0;   // about where the file begins among the bytes of all
  std::int64_t file_bytes = 0;
  const TextBlock* message = nullptr;  // the block of messages that has it; null: it is of a file

  /// About the bytes up to this row.
  std::int64_t bytes_to(std::int64_t row) const;
};

/// False: what the file says of the group's columns leaves none of its rows in the selection, which
/// may be null.
bool may_select(const ParquetGroup& group, const RowSelection* selection);

/// Gives out the row groups of files in order; opens each file when its turn comes. One thread at a
/// time. `schema` must outlive it.
class ParquetGroups {
 public:
  /// Groups that begin at `max_rows` or later are left out, unless it is 0. `records`, if any, are
  /// of these files, and are told when one is opened. `is_cancelled`: as of open_parquet.
  ParquetGroups(const Schema& schema,
                FileList files,
                std::int64_t max_rows,
                std::shared_ptr<FileRecords> records,
                std::function<bool()> is_cancelled);

  /// Each file has at least one group, maybe an empty one. False at the end. Throws as
  /// MappedParquet.
  bool next(ParquetGroup& group);

 private:
  const Schema& schema_;
  const FileList files_;
  const std::int64_t max_rows_;
  const std::shared_ptr<FileRecords> records_;
  const std::function<bool()> is_cancelled_;
  std::size_t next_file_ = 0;
  std::int64_t next_byte_ = 0;  // of the next file
  ParquetGroup last_;           // given out; is_last: the next file is to be opened
};

}  // namespace satrap::data
