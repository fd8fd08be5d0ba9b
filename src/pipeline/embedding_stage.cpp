#include "satrap/pipeline/embedding_stage.h"

#include <algorithm>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::pipeline {

EmbeddingStage::EmbeddingStage(Options options, StageTimers& timers)
    : options_(std::move(options)),
      timers_(timers),
      last_looked_up_(options_.first_step - 1),
      histogram_(static_cast<std::size_t>(options_.staleness + 1), 0) {
  for (const PendingLookup& lookup : options_.restored) restored_[lookup.step] = lookup;
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

bool EmbeddingStage::all_looked_up_and_applied() const {
  std::lock_guard lock(mutex_);
  return ended_ && looked_up_.empty();
}

std::vector<PendingLookup> EmbeddingStage::pending_lookups(std::int64_t step) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return stopped_ || last_looked_up_ >= step + options_.staleness ||
           (planned_closed_ && planned_.empty());
  });
  if (error_) std::rethrow_exception(error_);
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

// -------------------------------------------------------------------------- for derived classes

bool EmbeddingStage::take_restored(Work& work) {
  auto restored = restored_.extract(work.step);
  if (!restored) return false;
  PendingLookup& lookup = restored.mapped();
  SATRAP_CHECK(lookup.pooled.size() == work.pooled.size(), "restored lookup of step ", work.step,
               " has another shape than its batch");
  work.read_version = lookup.read_version;
  work.pooled = std::move(lookup.pooled);
  work.mask = std::move(lookup.mask);
  return true;
}

void EmbeddingStage::pass_on(Work* work) {
  const std::int64_t staleness = work->step - 1 - work->read_version;
  std::lock_guard lock(mutex_);
  const auto place = static_cast<std::size_t>(std::max<std::int64_t>(0, staleness));
  if (place >= histogram_.size()) histogram_.resize(place + 1);  // async only
  ++histogram_[place];
  last_looked_up_ = work->step;
  looked_up_.push_back(work);
  changed_.notify_all();
}

}  // namespace satrap::pipeline
