#pragma once

#include <string>

#include "satrap/checkpoint/checkpoint_format.h"
#include "satrap/checkpoint/continuation.h"
#include "satrap/core/thread_pool.h"
#include "satrap/data/dataset.h"
#include "satrap/data/transforms.h"
#include "satrap/job/job_config.h"
#include "satrap/pipeline/cluster.h"
#include "satrap/pipeline/model.h"

namespace satrap::trainer {

/// A job as one process on the CPU computes it, wherever it is trained.
job::JobConfig in_this_process(job::JobConfig config);

/// The model of a checkpoint, for use outside training: this process holds the tables, wherever the
/// job keeps them. Does not move: its parts refer to each other.
class LoadedModel {
 public:
  /// kNone: only the dense network; tables stay empty.
  enum class Rows { kAll, kNone };

  /// `checkpoint` is a checkpoint, or a directory for its newest. `make_network`: as
  /// pipeline::Model has it. Throws as load_checkpoint and check_predictions.
  LoadedModel(const job::JobConfig& config,
              const checkpoint::UsedCheckpoint& checkpoint,
              const pipeline::MakeNetwork& make_network,
              Rows rows = Rows::kAll);
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  const job::JobConfig config;
  const std::string path;  // of the checkpoint
  ThreadPool pool;
  const data::Dataset data;
  const data::FittedTransforms transforms;
  pipeline::Cluster cluster;
  pipeline::Model model;
  const checkpoint::Manifest manifest;
};

}  // namespace satrap::trainer
