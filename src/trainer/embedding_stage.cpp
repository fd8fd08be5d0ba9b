#include "embedding_stage.h"

#include <algorithm>

#include "satrap/core/error.h"
#include "satrap/core/thread_name.h"
#include "stages.h"

namespace satrap::trainer {

EmbeddingStage::EmbeddingStage(embedding::EmbeddingWorker& worker,
                               Options options,
                               StageTimers& timers)
    : worker_(worker),
      options_(std::move(options)),
      timers_(timers),
      last_looked_up_(options_.first_step - 1),
      last_applied_(options_.first_step - 1),
      histogram_(static_cast<std::size_t>(options_.staleness + 1), 0) {
  for (const PendingLookup& lookup : options_.restored) restored_[lookup.step] = lookup;
  thread_ = std::thread([this] {
    set_thread_name("embedding");
    run();
  });
}

EmbeddingStage::~EmbeddingStage() {
  stop();
  thread_.join();
}

// ------------------------------------------------------------------------------- planner side

bool EmbeddingStage::submit_planned(Work* work) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || std::ssize(planned_) < options_.planned_capacity; });
  if (stopped_) return false;
  planned_.push_back(work);
  changed_.notify_all();
  return true;
}

void EmbeddingStage::close_planned() {
  std::lock_guard lock(mutex_);
  planned_closed_ = true;
  changed_.notify_all();
}

Work* EmbeddingStage::take_free() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || !free_.empty(); });
  if (stopped_) return nullptr;
  Work* work = free_.front();
  free_.pop_front();
  return work;
}

void EmbeddingStage::add_free(Work* work) {
  std::lock_guard lock(mutex_);
  free_.push_back(work);
  changed_.notify_all();
}

void EmbeddingStage::fail(std::exception_ptr error) {
  std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  stopped_ = true;
  changed_.notify_all();
}

// --------------------------------------------------------------------------------- dense side

Work* EmbeddingStage::take_looked_up(const std::atomic<bool>* stop) {
  constexpr std::chrono::milliseconds kPoll(50);  // a signal cannot notify
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return stopped_ || ended_ || !looked_up_.empty(); };
  while (!changed_.wait_for(lock, kPoll, ready)) {
    if (stop != nullptr && stop->load()) return nullptr;
  }
  if (error_) std::rethrow_exception(error_);
  if (stopped_ || looked_up_.empty()) return nullptr;
  Work* work = looked_up_.front();
  looked_up_.pop_front();
  changed_.notify_all();
  return work;
}

void EmbeddingStage::submit_gradient(Work* work) {
  std::lock_guard lock(mutex_);
  gradients_.push_back(work);
  changed_.notify_all();
}

void EmbeddingStage::wait_applied(std::int64_t step) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || last_applied_ >= step; });
  if (error_) std::rethrow_exception(error_);
}

bool EmbeddingStage::all_looked_up_and_applied() const {
  std::lock_guard lock(mutex_);
  return ended_ && looked_up_.empty();
}

bool EmbeddingStage::wait_applied_for(std::int64_t step, std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  const bool applied =
      changed_.wait_for(lock, time, [&] { return stopped_ || last_applied_ >= step; });
  if (error_) std::rethrow_exception(error_);
  return applied;
}

std::vector<PendingLookup> EmbeddingStage::pending_lookups(std::int64_t step) {
  std::lock_guard lock(mutex_);
  std::vector<PendingLookup> pending;
  for (const Work* work : looked_up_) {
    if (work->step > step + options_.staleness) break;
    pending.push_back({work->step, work->read_version, work->pooled, work->mask});
  }
  return pending;
}

void EmbeddingStage::stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

std::vector<std::int64_t> EmbeddingStage::staleness_histogram() const {
  std::lock_guard lock(mutex_);
  return histogram_;
}

// --------------------------------------------------------------------------------- the thread

EmbeddingStage::Action EmbeddingStage::next_action() const {
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

void EmbeddingStage::run() {
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

void EmbeddingStage::look_up(Work* work) {
  work->read_version = last_applied_;
  const auto rows = static_cast<std::size_t>(work->batch.num_rows);
  work->pooled.resize(rows * static_cast<std::size_t>(worker_.output_width()));
  work->mask.resize(rows * static_cast<std::size_t>(worker_.mask_width()));
  if (auto restored = restored_.extract(work->step)) {
    SATRAP_CHECK(restored.mapped().pooled.size() == work->pooled.size(), "restored lookup of step ",
                 work->step, " has another shape than its batch");
    work->read_version = restored.mapped().read_version;
    work->pooled = std::move(restored.mapped().pooled);
    work->mask = std::move(restored.mapped().mask);
  } else {
    const ScopedStage timer(timers_, kStageForward);
    worker_.forward(work->plan, work->batch, work->pooled, work->mask);
  }
  const std::int64_t staleness = work->step - 1 - work->read_version;
  SATRAP_CHECK(staleness >= 0 && staleness <= options_.staleness, "lookup of step ", work->step,
               " read E_", work->read_version, ", bound is ", options_.staleness);
  std::lock_guard lock(mutex_);
  ++histogram_[static_cast<std::size_t>(staleness)];
  last_looked_up_ = work->step;
  looked_up_.push_back(work);
  changed_.notify_all();
}

void EmbeddingStage::update(Work* work) {
  SATRAP_CHECK(work->step == last_applied_ + 1, "update of step ", work->step, " after step ",
               last_applied_);
  if (!work->skip_update) {
    const ScopedStage timer(timers_, kStageBackward);
    worker_.backward(work->plan, work->grad_pooled, work->step);
  }
  std::lock_guard lock(mutex_);
  last_applied_ = work->step;
  free_.push_back(work);
  changed_.notify_all();
}

}  // namespace satrap::trainer
