#include "src/embedding/completed_steps.h"

#include <algorithm>

#include "satrap/core/error.h"

namespace satrap::embedding {

void CompletedSteps::start_after(std::int64_t step) {
  const MutexLock lock(mutex_);
  newest_ = step;
}

void CompletedSteps::add(std::int64_t step, backend::StreamRef stream) {
  const MutexLock lock(mutex_);
  if (free_.empty()) free_.push_back(std::make_shared<backend::Event>(device_));
  Mark mark = std::move(free_.back());
  free_.pop_back();
  mark->record(stream);
  queued_.emplace_back(step, std::move(mark));
  added_.notify_all();
}

std::int64_t CompletedSteps::newest() {
  const MutexLock lock(mutex_);
  return find_newest();
}

std::int64_t CompletedSteps::find_newest() {
  while (!queued_.empty() && queued_.front().second->is_reached()) {
    newest_ = std::max(newest_, queued_.front().first);
    free_.push_back(std::move(queued_.front().second));
    queued_.pop_front();
  }
  return newest_;
}

void CompletedSteps::wait_beyond(std::int64_t step) {
  MutexLock lock(mutex_);
  while (find_newest() <= step) {
    if (!queued_.empty()) {
      const Mark oldest = queued_.front().second;
      lock.unlock();
      oldest->wait_until_reached();
      lock.lock();
    } else if (!is_stopped_) {
      added_.wait(mutex_);
    }
    if (is_stopped_) throw Error(ErrorCode::kUnavailable, "the cache of rows was stopped");
  }
}

void CompletedSteps::stop() {
  const MutexLock lock(mutex_);
  is_stopped_ = true;
  added_.notify_all();
}

}  // namespace satrap::embedding
