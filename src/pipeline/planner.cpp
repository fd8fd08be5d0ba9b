#include "satrap/pipeline/planner.h"

#include "satrap/core/thread_name.h"
#include "satrap/pipeline/stages.h"

namespace satrap::pipeline {

Planner::Planner(GlobalBatches& batches,
                 EmbeddingStage& stage,
                 StageTimers& timers,
                 std::int64_t first_step,
                 std::int64_t last_step)
    : batches_(batches), stage_(stage), timers_(timers) {
  thread_ = std::thread([this, first_step, last_step] {
    set_thread_name("planner");
    try {
      run(first_step, last_step);
      stage_.close_planned();
    } catch (...) {
      stage_.fail(std::current_exception());
    }
  });
}

Planner::~Planner() {
  stage_.stop();
  batches_.close();
  thread_.join();
}

void Planner::run(std::int64_t first_step, std::int64_t last_step) {
  for (std::int64_t step = first_step; last_step == 0 || step <= last_step; ++step) {
    Work* work = stage_.take_free();
    if (work == nullptr) return;
    if (!batches_.next(work->batch, work->shares)) return;
    work->step = step;
    {
      const ScopedStage timer(timers_, kStagePlan);
      stage_.plan(*work);
    }
    if (!stage_.submit_planned(work)) return;
  }
}

}  // namespace satrap::pipeline
