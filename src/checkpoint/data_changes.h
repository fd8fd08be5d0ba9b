#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "satrap/data/data_file.h"
#include "satrap/data/file_prefix.h"

namespace satrap::checkpoint {

/// The effect of a change of the training files on a run that continues at a row.
enum class DataChangeKind {
  kRead,      // the rows before that row are no longer those that were read
  kAhead,     // only later rows differ
  kAppended,  // files follow that were not there
  kNone,      // the rows are the same, as far as can be told
};

struct DataChange {
  DataChangeKind kind = DataChangeKind::kNone;
  std::string text;  // "data file day_1.tsv: 120 bytes -> 90 bytes"
};

/// The prefix of `bytes` bytes of a file that has at least so many: data::examine_prefix.
using PrefixOf = std::function<data::FilePrefix(const std::string& path, std::int64_t bytes)>;

/// Compares the files of an epoch of which all rows before `rows_read` have been read with those of
/// now. Rows are numbered over all files, so the content of files counts, in their reading order:
///   - Files with rows before `rows_read` must come first, each with its size and checksum, in
///     their order. The last of them may have grown if the position is within it; if all of it was
///     read, only if it was the last of all and its new rows begin with a new line.
///   - All other files are ahead, even those that an earlier epoch has read.
/// Another path or time of modification is no change of a file that has its size and checksum. A
/// file that was never opened has no checksum: its size counts. Pipes are not compared.
///
/// A line for each change, at most ten of each kind; a last line has the number of the others.
std::vector<DataChange> data_changes(const std::vector<data::DataFile>& before,
                                     std::int64_t rows_read,
                                     const std::vector<data::DataFile>& now,
                                     const PrefixOf& prefix_of);

}  // namespace satrap::checkpoint
