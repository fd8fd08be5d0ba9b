#include "satrap/pipeline/planner_thread.h"

#include "satrap/core/thread_group.h"
#include "src/pipeline/batches_ahead.h"

namespace satrap::pipeline {

PlannerThread::PlannerThread(GlobalBatches& batches,
                             StepQueue& queue,
                             StepDriver& driver,
                             std::int64_t first_step,
                             std::int64_t last_step)
    : batches_(batches), queue_(queue), driver_(driver) {
  thread_ = start_thread("planner", [this, first_step, last_step] {
    try {
      run(first_step, last_step);
      driver_.close();
    } catch (...) {
      queue_.fail(std::current_exception());
    }
  });
}

PlannerThread::~PlannerThread() {
  driver_.stop();
  batches_.close();
  thread_.join();
}

void PlannerThread::run(std::int64_t first_step, std::int64_t last_step) {
  BatchesAhead batches(batches_, driver_, first_step, last_step);
  for (std::int64_t step = first_step; last_step == 0 || step <= last_step; ++step) {
    Work* work = queue_.take_free();
    if (work == nullptr) return;
    if (!batches.next(*work)) return;
    work->step = step;
    driver_.make_plan(*work);
    if (!driver_.submit(work)) return;
  }
}

}  // namespace satrap::pipeline
