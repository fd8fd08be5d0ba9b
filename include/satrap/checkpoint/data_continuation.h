#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "satrap/data/dataset.h"

namespace satrap::checkpoint {

/// The changes of the training files since a checkpoint.
struct DataContinuation {
  std::vector<std::string> changes;  // those that matter, a line each: equal on all ranks
  bool has_same_input() const { return changes.empty(); }
};

/// Compares the training files with those of the checkpoint: their content and order, by size and
/// checksum of beginning and end. Behind the checkpoint's position in the epoch, and in the file at
/// it, a change means that the number of a row no longer says which rows have been trained on: it
/// throws Error(kInvalidConfig) with a line for each, or, with `accepts`, warns and continues at
/// the same number. A change of later files, rows added after the position, and files appended to
/// the list are only logged. In a later epoch, too, the position in that epoch decides. With a
/// shuffle buffer the rows in it are behind the position.
///
/// Generated rows have nothing to compare; if the checkpoint has no record of its files, the log
/// says so. `logs`: of the chief; the other ranks only throw. Reads 128 KiB of each file that had
/// been opened.
DataContinuation compare_data(const std::string& checkpoint,
                              const data::Dataset& data,
                              bool accepts,
                              bool logs);

/// Throws Error(kInvalidConfig) if rank `rank` sees other changes than the chief: then it reads
/// other files.
void require_same_changes(const DataContinuation& mine,
                          const std::vector<std::string>& of_chief,
                          std::int64_t rank);

}  // namespace satrap::checkpoint
