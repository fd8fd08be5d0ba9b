#include "satrap/pipeline/step_queue.h"

#include <algorithm>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::pipeline {
namespace {

/// Removes and returns the front of a queue; nullptr if it is empty.
Work* take(std::deque<Work*>& queue) {
  if (queue.empty()) return nullptr;
  Work* work = queue.front();
  queue.pop_front();
  return work;
}

}  // namespace

StepQueue::StepQueue(std::int64_t first_step, const table::StalenessBound& staleness)
    : staleness_(staleness),
      last_planned_(first_step - 1),
      last_looked_up_(first_step - 1),
      last_retired_(first_step - 1),
      last_finished_(first_step - 1),
      histogram_(static_cast<std::size_t>(staleness.max() + 1), 0) {}

// ------------------------------------------------------------------------------- planner side

void StepQueue::add_free(Work* work) {
  const MutexLock lock(mutex_);
  free_.push_back(work);
  changed_.notify_all();
}

Work* StepQueue::take_free() {
  const MutexLock lock(mutex_);
  while (!stopped_ && free_.empty()) changed_.wait(mutex_);
  return stopped_ ? nullptr : take(free_);
}

bool StepQueue::wait_for_room(std::int64_t capacity) {
  return wait([&](const State& state) { return state.num_planned < capacity; });
}

void StepQueue::add_planned(Work* work) {
  const MutexLock lock(mutex_);
  SATRAP_CHECK(work->step == last_planned_ + 1, "step ", work->step, " is planned after step ",
               last_planned_);
  last_planned_ = work->step;
  planned_.push_back(work);
  changed_.notify_all();
}

void StepQueue::close_planned() {
  const MutexLock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

// -------------------------------------------------------------------------------- driver side

Work* StepQueue::first_planned() {
  const MutexLock lock(mutex_);
  while (!stopped_ && !closed_ && planned_.empty()) changed_.wait(mutex_);
  return stopped_ || planned_.empty() ? nullptr : planned_.front();
}

Work* StepQueue::take_gradient() {
  const MutexLock lock(mutex_);
  while (!stopped_ && !ended() && gradients_.empty()) changed_.wait(mutex_);
  return stopped_ ? nullptr : take(gradients_);
}

void StepQueue::pass_on(Work* work) {
  const std::int64_t staleness = std::max<std::int64_t>(0, work->step - 1 - work->read_version);
  const MutexLock lock(mutex_);
  SATRAP_CHECK(!planned_.empty() && planned_.front() == work, "step ", work->step,
               " is looked up out of order");
  planned_.pop_front();
  last_looked_up_ = work->step;
  looked_up_.push_back(work);
  // Beyond the bound only in async mode.
  histogram_.resize(std::max(histogram_.size(), static_cast<std::size_t>(staleness + 1)));
  ++histogram_[static_cast<std::size_t>(staleness)];
  changed_.notify_all();
}

void StepQueue::retire(Work* work) {
  const MutexLock lock(mutex_);
  SATRAP_CHECK(work->step == last_retired_ + 1, "step ", work->step, " is retired after step ",
               last_retired_);
  last_retired_ = work->step;
  release(work);
  changed_.notify_all();
}

// --------------------------------------------------------------------------------- dense side

Work* StepQueue::take_looked_up(const std::atomic<bool>* stop) {
  constexpr std::chrono::milliseconds kPoll(50);  // a signal cannot notify
  const MutexLock lock(mutex_);
  is_wanted_ = looked_up_.empty();
  if (is_wanted_) changed_.notify_all();
  auto next_poll = std::chrono::steady_clock::now() + kPoll;
  while (!stopped_ && !ended() && looked_up_.empty()) {
    if (changed_.wait_until(mutex_, next_poll)) continue;
    if (stop != nullptr && stop->load()) return nullptr;
    next_poll = std::chrono::steady_clock::now() + kPoll;
  }
  is_wanted_ = false;
  if (error_) std::rethrow_exception(error_);
  if (stopped_) return nullptr;
  changed_.notify_all();
  return take(looked_up_);
}

void StepQueue::put_back(Work* work) {
  const MutexLock lock(mutex_);
  looked_up_.push_front(work);
}

void StepQueue::submit_gradient(Work* work) {
  const MutexLock lock(mutex_);
  gradients_.push_back(work);
  changed_.notify_all();
}

void StepQueue::finish(Work* work) {
  const MutexLock lock(mutex_);
  SATRAP_CHECK(work->step == last_finished_ + 1, "step ", work->step, " is finished after step ",
               last_finished_);
  last_finished_ = work->step;
  release(work);
  changed_.notify_all();
}

// Called twice per work; the second call frees it.
void StepQueue::release(Work* work) {
  if (work->step <= std::min(last_retired_, last_finished_)) free_.push_back(work);
}

void StepQueue::wait_retired(std::int64_t step) {
  const MutexLock lock(mutex_);
  while (!retired(step)) changed_.wait(mutex_);
  if (error_) std::rethrow_exception(error_);
}

void StepQueue::wait_passed(std::int64_t retired, std::int64_t looked_up) {
  const MutexLock lock(mutex_);
  while (!stopped_ && (last_retired_ < retired || !has_looked_up(looked_up))) {
    changed_.wait(mutex_);
  }
  if (error_) std::rethrow_exception(error_);
}

bool StepQueue::wait_retired_until(std::int64_t step,
                                   std::chrono::steady_clock::time_point deadline) {
  const MutexLock lock(mutex_);
  while (!retired(step) && changed_.wait_until(mutex_, deadline)) continue;
  if (error_) std::rethrow_exception(error_);
  return retired(step);
}

bool StepQueue::has_ended() const {
  const MutexLock lock(mutex_);
  return ended();
}

std::vector<PendingLookup> StepQueue::pending_lookups(std::int64_t step) {
  const std::int64_t last = staleness_.last_reader(step - 1);
  const MutexLock lock(mutex_);
  while (!stopped_ && !has_looked_up(last)) changed_.wait(mutex_);
  if (error_) std::rethrow_exception(error_);
  std::vector<PendingLookup> pending;
  for (const Work* work : looked_up_) {
    if (work->step <= step || work->step > last) continue;
    pending.push_back(
        {work->step, work->read_version, work->inputs.pooled_values(), work->inputs.mask_values()});
  }
  return pending;
}

// ----------------------------------------------------------------------------------- any side

void StepQueue::stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

void StepQueue::fail(std::exception_ptr error) {
  const MutexLock lock(mutex_);
  if (!error_) error_ = std::move(error);
  stopped_ = true;
  changed_.notify_all();
}

bool StepQueue::is_stopped() const {
  const MutexLock lock(mutex_);
  return stopped_;
}

void StepQueue::wait_stopped_for(std::chrono::milliseconds time) {
  const MutexLock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + time;
  while (!stopped_ && changed_.wait_until(mutex_, until)) continue;
}

std::vector<std::int64_t> StepQueue::staleness_histogram() const {
  const MutexLock lock(mutex_);
  return histogram_;
}

}  // namespace satrap::pipeline
