#pragma once

#include <cstdint>
#include <thread>

#include "satrap/pipeline/global_batches.h"
#include "satrap/pipeline/step_driver.h"
#include "satrap/pipeline/step_queue.h"

namespace satrap::pipeline {

/// The thread that reads batches, plans them and passes them to the driver of the rows, as far
/// ahead as the driver allows.
class PlannerThread {
 public:
  /// Starts with `first_step`; ends after `last_step` (0: with the data). All outlive the thread.
  PlannerThread(GlobalBatches& batches,
                StepQueue& queue,
                StepDriver& driver,
                std::int64_t first_step,
                std::int64_t last_step);
  ~PlannerThread();  // stops the driver, closes the batches and joins

 private:
  void run(std::int64_t first_step, std::int64_t last_step);

  GlobalBatches& batches_;
  StepQueue& queue_;
  StepDriver& driver_;
  std::thread thread_;
};

}  // namespace satrap::pipeline
