#include "src/embedding/queued_steps.h"

namespace satrap::embedding {

void QueuedSteps::add(std::int64_t step, backend::StreamRef stream) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) free_.push_back(std::make_shared<backend::Event>(device_));
  Mark mark = std::move(free_.back());
  free_.pop_back();
  mark->record(stream);
  steps_.emplace_back(step, std::move(mark));
}

std::optional<std::int64_t> QueuedSteps::newest_done() {
  const std::lock_guard lock(mutex_);
  while (!steps_.empty() && steps_.front().second->is_reached()) {
    newest_done_ = steps_.front().first;
    free_.push_back(std::move(steps_.front().second));
    steps_.pop_front();
  }
  return newest_done_;
}

bool QueuedSteps::is_empty() const {
  const std::lock_guard lock(mutex_);
  return steps_.empty();
}

void QueuedSteps::wait_for_oldest() {
  Mark oldest;
  {
    const std::lock_guard lock(mutex_);
    if (!steps_.empty()) oldest = steps_.front().second;
  }
  if (oldest) oldest->wait_until_reached();
}

}  // namespace satrap::embedding
