#include "src/pipeline/shard_driver.h"

#include <algorithm>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/pipeline/stages.h"

namespace satrap::pipeline {

ShardDriver::ShardDriver(StepQueue& queue,
                         embedding::RowAccess& access,
                         ps::StepClient& client,
                         Options options,
                         StageTimers& timers)
    : StepDriver(queue, access, std::move(options), timers),
      client_(client),
      pace_(options_.staleness.max(), capacity()),
      last_requested_(options_.first_step - 1),
      last_pushed_(options_.first_step - 1),
      pushed_(static_cast<std::size_t>(options_.planned_capacity + options_.staleness.max() + 1)) {
  start("embedding", &ShardDriver::look_up_planned);
  start("push", &ShardDriver::push_gradients);
  start("pushed", &ShardDriver::wait_pushed);
}

void ShardDriver::start(const char* name, void (ShardDriver::*loop)()) {
  threads_.start(name, [this, loop] {
    try {
      (this->*loop)();
    } catch (...) {
      queue_.fail(std::current_exception());
    }
  });
}

void ShardDriver::stop() {
  const bool has_ended = queue_.has_ended();
  queue_.stop();
  if (has_ended) return;
  access_.stop();
  client_.stop();
}

// ------------------------------------------------------------------------------ planner thread

std::int64_t ShardDriver::capacity() const {
  return std::min(options_.planned_capacity + options_.staleness.max(), client_.max_pulls());
}

bool ShardDriver::submit(Work* work) {
  if (!queue_.wait_for_room(capacity())) return false;
  const std::int64_t least_version = pace_.request(work->step, Clock::now());
  const bool has_choice = !options_.deterministic && !options_.is_async;
  work->rows->request(work->step, has_choice ? least_version : 0);
  last_requested_ = work->step;
  queue_.add_planned(work);
  return true;
}

void ShardDriver::close() {
  client_.end_pulls(last_requested_);
  queue_.close_planned();
}

// -------------------------------------------------------------------------------- dense thread

void ShardDriver::wait_applied(std::int64_t step) {
  queue_.wait_retired(step);
  if (!queue_.is_stopped()) client_.wait_applied(step);
}

bool ShardDriver::wait_applied_for(std::int64_t step, std::chrono::milliseconds time) {
  constexpr std::chrono::milliseconds kPoll(10);  // shards do not notify the rank
  const auto deadline = std::chrono::steady_clock::now() + time;
  if (!queue_.wait_retired_until(step, deadline)) return false;
  while (!queue_.is_stopped()) {
    if (client_.is_applied(step)) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    queue_.wait_stopped_for(kPoll);
  }
  queue_.wait_retired(step);  // rethrows the error that stopped it
  return true;
}

// ---------------------------------------------------------------------------------- the threads

void ShardDriver::look_up_planned() {
  while (Work* work = queue_.first_planned()) {
    const Lookup lookup = look_up(work, 0);
    pace_.note_pooled(lookup.step, lookup.read_version, Clock::now());
  }
}

void ShardDriver::push_gradients() {
  try {
    while (Work* work = queue_.take_gradient()) {
      SATRAP_CHECK(work->step == last_pushed_ + 1, "push of step ", work->step, " after step ",
                   last_pushed_);
      pace_.note_sent(work->step, Clock::now());
      update(work);
      last_pushed_ = work->step;
      pushed_.push(work);
    }
  } catch (...) {
    queue_.fail(std::current_exception());
  }
  pushed_.close();
}

void ShardDriver::wait_pushed() {
  while (const auto work = pushed_.pop()) {
    {
      const ScopedStage timer(timers_, kStagePush);
      (*work)->rows->wait_taken();
    }
    queue_.retire(*work);
  }
}

}  // namespace satrap::pipeline
