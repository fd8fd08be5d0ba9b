#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "satrap/checkpoint/continuation.h"
#include "satrap/data/texts.h"
#include "satrap/job/job_config.h"
#include "satrap/pipeline/model.h"

namespace satrap::trainer {

/// Counts of the rows that predict() has read.
struct PredictedRows {
  std::int64_t rows = 0;      // lines, headers not counted
  std::int64_t bad_rows = 0;  // of them: could not be parsed
};

/// Predictions of some lines: predict() gives them out in order.
struct PredictedLines {
  std::span<const float> predictions;  // [lines], with several labels or classes a column for each
  std::span<const data::Texts> kept;   // [columns] of `lines` texts each
};

/// Predicts every line of the job's evaluation data with the model of a checkpoint (or the newest
/// of a directory). Calls `take` with the predictions and the fields of the columns `keep`, as
/// they are written; those of a line with too few or too many fields are empty. A bad or blank line
/// has NaN, so that lines stay aligned; bad ones are logged, or end it with Error(kInvalidData) if
/// data.on_bad_row is stop. Ids that were never trained count with their initial weights, as in
/// evaluation. Returns early once `stop` is set (may be null).
///
/// Labels are ignored. In a file with a header, label columns may be missing. Without a header but
/// with named columns, a line has all columns or all but those that only labels use, as its first
/// line that is not blank decides: any other number is Error(kInvalidConfig). If columns are
/// numbered, label columns count and must be present.
///
/// Throws Error(kInvalidConfig) if the checkpoint was trained with a configuration whose inputs or
/// labels mean something else (check_predictions). `make_network`: as in TrainOptions.
PredictedRows predict(const job::JobConfig& config,
                      const checkpoint::UsedCheckpoint& checkpoint,
                      const std::atomic<bool>* stop,
                      const std::vector<std::string>& keep,
                      const std::function<void(const PredictedLines& lines)>& take,
                      const pipeline::MakeNetwork& make_network = {});

}  // namespace satrap::trainer
