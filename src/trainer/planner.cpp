#include "planner.h"

#include "satrap/core/thread_name.h"
#include "stages.h"

namespace satrap::trainer {

Planner::Planner(data::BatchSource& source,
                 embedding::EmbeddingWorker& worker,
                 EmbeddingStage& stage,
                 StageTimers& timers,
                 std::int64_t first_step,
                 std::int64_t last_step)
    : source_(source), worker_(worker), stage_(stage), timers_(timers) {
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
  source_.close();
  thread_.join();
}

void Planner::run(std::int64_t first_step, std::int64_t last_step) {
  for (std::int64_t step = first_step; last_step == 0 || step <= last_step; ++step) {
    Work* work = stage_.take_free();
    if (work == nullptr) return;
    {
      const ScopedStage timer(timers_, kStageRead);
      if (!source_.next(work->batch)) return;
    }
    work->step = step;
    work->position = source_.position();
    {
      const ScopedStage timer(timers_, kStagePlan);
      worker_.plan(work->batch, work->plan);
    }
    if (!stage_.submit_planned(work)) return;
  }
}

}  // namespace satrap::trainer
