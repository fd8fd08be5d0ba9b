#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "run_directory.h"
#include "satrap/checkpoint/continuation.h"
#include "satrap/data/schema.h"
#include "satrap/job/job_config.h"
#include "satrap/pipeline/cluster.h"
#include "satrap/trainer/trainer.h"

namespace satrap::trainer {

/// What the chief determines and sends to all ranks before a job starts.
struct JobStart {
  std::string checkpoint;  // to continue from; "": none
  std::string transforms;  // JSON
  checkpoint::Continuation continuation;
  std::int64_t first_eval_row = -1;                       // data::EvalConfig::first_row
  std::shared_ptr<const data::TopicPosition> topic = {};  // data::KafkaConfig::position
  std::int64_t topic_row = -1;  // number of the row there from which all ranks continue; -1: as
                                // the checkpoint says
  checkpoint::UsedCheckpoint
      warm_start;  // whose rows the first step starts with; its path is "": none

  /// All ranks call it together. The chief takes the run directory, and fits the transforms to the
  /// data unless a checkpoint has them. Every rank compares its training files with the
  /// checkpoint's.
  static JobStart decide(const job::JobConfig& config,
                         const TrainOptions& options,
                         const data::Schema& schema,
                         pipeline::Cluster& cluster,
                         std::optional<RunDirectory>& directory);
};

}  // namespace satrap::trainer
