#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "satrap/job/job_config.h"

namespace satrap::trainer {

/// What predict() has read.
struct PredictedRows {
  std::int64_t rows = 0;      // lines, headers not counted
  std::int64_t bad_rows = 0;  // of them: could not be parsed
};

/// Calls `take` with the probability of every line of the job's evaluation data, in order, some
/// lines at a time (of several labels one probability of each, line by line: [lines, labels]), by
/// the model of a checkpoint (or the newest of a directory). A line without a usable row, a bad or
/// a blank one, has NaN, so that no later one moves; bad ones are shown in the log, or end it
/// with Error(kInvalidData) if data.on_bad_row is stop. Ids that were never trained count with
/// their initial weights, as in evaluation. Returns early once `stop` is set (may be null).
///
/// Labels are not read, and in a file with a header their columns need not be there. A file without
/// one has, if the schema names the columns, all of them or all but those that only labels are made
/// of: Error(kInvalidConfig) if its first line that is not blank has neither number. If columns are
/// numbered, those of labels count and have to be there.
///
/// Throws Error(kInvalidConfig) if the checkpoint was trained on labels of other names, or in
/// another order.
PredictedRows predict(const job::JobConfig& config,
                      const std::string& checkpoint,
                      const std::atomic<bool>* stop,
                      const std::function<void(std::span<const float> probabilities)>& take);

}  // namespace satrap::trainer
