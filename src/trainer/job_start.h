#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "satrap/checkpoint/continuation.h"
#include "satrap/data/dataset.h"
#include "satrap/job/job_config.h"
#include "satrap/pipeline/cluster.h"
#include "satrap/trainer/trainer.h"
#include "src/trainer/run_directory.h"

namespace satrap::trainer {

/// What the chief determines and sends to all ranks before a job starts.
struct JobStart {
  std::string checkpoint;  // to continue from; "": none
  std::string transforms;  // JSON
  checkpoint::Continuation continuation;
  data::Dataset data;
  std::int64_t topic_row = -1;  // number of the row in the topic from which all ranks continue; -1:
                                // as the checkpoint says
  checkpoint::UsedCheckpoint
      warm_start;  // whose rows the first step starts with; its path is "": none

  /// All ranks call it together. The chief takes the run directory, and fits the transforms to the
  /// data unless a checkpoint has them. Every rank compares its training files with the
  /// checkpoint's.
  static JobStart decide(const job::JobConfig& config,
                         const TrainOptions& options,
                         pipeline::Cluster& cluster,
                         std::optional<RunDirectory>& directory);
};

}  // namespace satrap::trainer
