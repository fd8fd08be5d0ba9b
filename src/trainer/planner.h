#pragma once

#include <cstdint>
#include <thread>

#include "embedding_stage.h"
#include "satrap/core/stage_timer.h"
#include "satrap/data/batch_source.h"
#include "satrap/embedding/embedding_worker.h"

namespace satrap::trainer {

/// The thread that reads batches, plans them and hands them to the embedding stage, as far ahead as
/// the stage's queue allows.
class Planner {
 public:
  /// Starts with `first_step`; ends after `last_step` (0: with the data). All outlive the planner.
  Planner(data::BatchSource& source,
          embedding::EmbeddingWorker& worker,
          EmbeddingStage& stage,
          StageTimers& timers,
          std::int64_t first_step,
          std::int64_t last_step);
  ~Planner();  // stops the stage, closes the source and joins

 private:
  void run(std::int64_t first_step, std::int64_t last_step);

  data::BatchSource& source_;
  embedding::EmbeddingWorker& worker_;
  EmbeddingStage& stage_;
  StageTimers& timers_;
  std::thread thread_;
};

}  // namespace satrap::trainer
