#include "src/pipeline/tables_stage.h"

#include "satrap/core/error.h"
#include "satrap/core/thread_name.h"
#include "satrap/pipeline/stages.h"

namespace satrap::pipeline {

TablesStage::TablesStage(embedding::EmbeddingWorker& worker, Options options, StageTimers& timers)
    : EmbeddingStage(std::move(options), timers),
      worker_(worker),
      last_applied_(options_.first_step - 1) {
  thread_ = std::thread([this] {
    set_thread_name("embedding");
    run();
  });
}

TablesStage::~TablesStage() {
  stop();
  thread_.join();
}

void TablesStage::plan(Work& work) { worker_.plan(work.batch, work.plan, work.step); }

void TablesStage::wait_applied(std::int64_t step) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || last_applied_ >= step; });
  if (error_) std::rethrow_exception(error_);
}

bool TablesStage::wait_applied_for(std::int64_t step, std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  const bool applied =
      changed_.wait_for(lock, time, [&] { return stopped_ || last_applied_ >= step; });
  if (error_) std::rethrow_exception(error_);
  return applied;
}

TablesStage::Action TablesStage::next_action() const {
  if (stopped_) return Action::kEnd;
  const bool no_more_lookups = planned_closed_ && planned_.empty();
  if (no_more_lookups && last_applied_ == last_looked_up_) return Action::kEnd;

  const std::int64_t required = last_looked_up_ - options_.staleness;  // of the next lookup
  const bool may_look_up = !planned_.empty() && last_applied_ >= required;
  const bool has_gradient = !gradients_.empty();
  if (options_.deterministic) {
    if (may_look_up) return Action::kLookUp;
    const bool may_update = last_applied_ < required || no_more_lookups;
    return has_gradient && may_update ? Action::kUpdate : Action::kWait;
  }
  if (may_look_up && looked_up_.empty()) return Action::kLookUp;  // the dense stage is waiting
  if (has_gradient) return Action::kUpdate;
  return may_look_up ? Action::kLookUp : Action::kWait;
}

void TablesStage::run() {
  try {
    while (true) {
      std::unique_lock lock(mutex_);
      Action action = Action::kWait;
      changed_.wait(lock, [&] { return (action = next_action()) != Action::kWait; });
      if (action == Action::kEnd) {
        ended_ = true;
        changed_.notify_all();
        return;
      }
      std::deque<Work*>& queue = action == Action::kLookUp ? planned_ : gradients_;
      Work* work = queue.front();
      queue.pop_front();
      changed_.notify_all();  // there is room for another
      lock.unlock();
      action == Action::kLookUp ? look_up(work) : update(work);
    }
  } catch (...) {
    fail(std::current_exception());
  }
}

void TablesStage::look_up(Work* work) {
  const auto rows = static_cast<std::size_t>(work->batch.num_rows);
  work->pooled.resize(rows * static_cast<std::size_t>(worker_.output_width()));
  work->mask.resize(rows * static_cast<std::size_t>(worker_.mask_width()));
  if (!take_restored(*work)) {
    const ScopedStage timer(timers_, kStageForward);
    work->read_version = last_applied_;
    worker_.forward(work->plan, work->batch, work->pooled, work->mask);
  }
  const std::int64_t staleness = work->step - 1 - work->read_version;
  SATRAP_CHECK(staleness >= 0 && staleness <= options_.staleness, "lookup of step ", work->step,
               " read E_", work->read_version, ", bound is ", options_.staleness);
  pass_on(work);
}

void TablesStage::update(Work* work) {
  SATRAP_CHECK(work->step == last_applied_ + 1, "update of step ", work->step, " after step ",
               last_applied_);
  if (work->skip_update) {
    worker_.skip(work->plan, work->step);
  } else {
    const ScopedStage timer(timers_, kStageBackward);
    worker_.backward(work->plan, work->grad_pooled, work->step);
  }
  std::lock_guard lock(mutex_);
  last_applied_ = work->step;
  free_.push_back(work);
  changed_.notify_all();
}

}  // namespace satrap::pipeline
