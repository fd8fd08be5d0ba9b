#pragma once

#include <cstdint>
#include <thread>

#include "satrap/core/stage_timer.h"
#include "satrap/pipeline/embedding_stage.h"
#include "satrap/pipeline/global_batches.h"

namespace satrap::pipeline {

/// The thread that reads batches, plans them and hands them to the embedding stage, as far ahead as
/// the stage's queue allows.
class Planner {
 public:
  /// Starts with `first_step`; ends after `last_step` (0: with the data). All outlive the planner.
  Planner(GlobalBatches& batches,
          EmbeddingStage& stage,
          StageTimers& timers,
          std::int64_t first_step,
          std::int64_t last_step);
  ~Planner();  // stops the stage, closes the batches and joins

 private:
  void run(std::int64_t first_step, std::int64_t last_step);

  GlobalBatches& batches_;
  EmbeddingStage& stage_;
  StageTimers& timers_;
  std::thread thread_;
};

}  // namespace satrap::pipeline
