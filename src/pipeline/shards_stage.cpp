#include "src/pipeline/shards_stage.h"

#include <algorithm>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/thread_name.h"
#include "satrap/pipeline/stages.h"

namespace satrap::pipeline {

ShardsStage::ShardsStage(embedding::RemoteEmbeddingWorker& worker,
                         ps::ShardClient& client,
                         bool is_async,
                         Options options,
                         StageTimers& timers)
    : EmbeddingStage(std::move(options), timers),
      worker_(worker),
      client_(client),
      is_async_(is_async),
      last_planned_(options_.first_step - 1),
      last_sent_(options_.first_step - 1),
      last_pushed_(options_.first_step - 1) {
  lookups_ = std::thread([this] {
    set_thread_name("embedding");
    run(&ShardsStage::look_up_planned);
  });
  pushes_ = std::thread([this] {
    set_thread_name("push");
    run(&ShardsStage::push_gradients);
  });
  answers_ = std::thread([this] {
    set_thread_name("pushed");
    run(&ShardsStage::wait_pushed);
  });
}

ShardsStage::~ShardsStage() {
  ShardsStage::stop();
  lookups_.join();
  pushes_.join();
  answers_.join();
}

void ShardsStage::stop() {
  bool has_ended = false;
  {
    std::lock_guard lock(mutex_);
    has_ended = ended_;
  }
  EmbeddingStage::stop();
  if (!has_ended) client_.stop();
}

void ShardsStage::run(void (ShardsStage::*loop)()) {
  try {
    (this->*loop)();
  } catch (...) {
    fail(std::current_exception());
  }
}

// ------------------------------------------------------------------------------- planner side

void ShardsStage::plan(Work& work) { worker_.plan(work.batch, work.plan); }

bool ShardsStage::submit_planned(Work* work) {
  {
    const auto capacity =
        std::min(options_.planned_capacity + options_.staleness, client_.max_pulls());
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || std::ssize(planned_) < capacity; });
    if (stopped_) return false;
  }
  client_.pull(work->step, work->plan.keys, work->rows);
  std::lock_guard lock(mutex_);
  last_planned_ = work->step;
  planned_.push_back(work);
  changed_.notify_all();
  return true;
}

void ShardsStage::close_planned() {
  client_.end_pulls(last_planned_);
  std::lock_guard lock(mutex_);
  planned_closed_ = true;
  ended_ = all_pushed();
  changed_.notify_all();
}

// --------------------------------------------------------------------------------- dense side

void ShardsStage::wait_applied(std::int64_t step) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || last_pushed_ >= step; });
    if (error_) std::rethrow_exception(error_);
    if (stopped_) return;
  }
  client_.wait_applied(step);
}

bool ShardsStage::wait_applied_for(std::int64_t step, std::chrono::milliseconds time) {
  constexpr std::chrono::milliseconds kPoll(10);  // shards do not tell us by themselves
  const auto end = std::chrono::steady_clock::now() + time;
  std::unique_lock lock(mutex_);
  const auto pushed = [&] { return stopped_ || last_pushed_ >= step; };
  if (!changed_.wait_until(lock, end, pushed)) return false;
  while (!error_ && !stopped_) {
    lock.unlock();
    const std::vector<ps::ShardStats> shards = client_.stats();
    const auto is_there = [&](const ps::ShardStats& shard) { return shard.applied_step >= step; };
    if (std::ranges::all_of(shards, is_there)) return true;
    if (std::chrono::steady_clock::now() >= end) return false;
    lock.lock();
    changed_.wait_for(lock, kPoll, [&] { return stopped_; });
  }
  if (error_) std::rethrow_exception(error_);
  return true;
}

// ---------------------------------------------------------------------------------- the threads

void ShardsStage::look_up_planned() {
  while (true) {
    Work* work = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopped_ || planned_closed_ || !planned_.empty(); });
      if (stopped_ || planned_.empty()) return;
      work = planned_.front();
    }
    look_up(work);
    std::lock_guard lock(mutex_);
    planned_.pop_front();  // only now: it counts among the pulls under way
    changed_.notify_all();
  }
}

void ShardsStage::look_up(Work* work) {
  {
    const ScopedStage timer(timers_, kStagePull);
    client_.wait(work->rows);
  }
  const auto rows = static_cast<std::size_t>(work->batch.num_rows);
  work->pooled.resize(rows * static_cast<std::size_t>(worker_.output_width()));
  work->mask.resize(rows * static_cast<std::size_t>(worker_.mask_width()));
  if (!take_restored(*work)) {
    const ScopedStage timer(timers_, kStageForward);
    work->read_version = work->rows.read_version();
    worker_.forward(work->plan, work->batch, work->rows.weights(), work->pooled, work->mask);
  }
  const std::int64_t staleness = work->step - 1 - work->read_version;
  SATRAP_CHECK(is_async_ || staleness <= options_.staleness, "lookup of step ", work->step,
               " read E_", work->read_version, ", bound is ", options_.staleness);
  pass_on(work);
}

bool ShardsStage::all_pushed() const { return planned_closed_ && last_pushed_ == last_planned_; }

void ShardsStage::push_gradients() {
  while (true) {
    Work* work = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopped_ || all_pushed() || !gradients_.empty(); });
      if (stopped_ || gradients_.empty()) return;
      work = gradients_.front();
      gradients_.pop_front();
    }
    push(work);
  }
}

void ShardsStage::push(Work* work) {
  SATRAP_CHECK(work->step == last_sent_ + 1, "push of step ", work->step, " after step ",
               last_sent_);
  client_.prepare_push(work->rows);
  if (!work->skip_update) {
    const ScopedStage timer(timers_, kStageBackward);
    worker_.reduce(work->plan, work->grad_pooled, work->rows.gradients());
  }
  client_.push(work->step, work->rows, work->skip_update);
  last_sent_ = work->step;
  std::lock_guard lock(mutex_);
  sent_.push_back(work);
  changed_.notify_all();
}

void ShardsStage::wait_pushed() {
  while (true) {
    Work* work = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopped_ || ended_ || !sent_.empty(); });
      if (sent_.empty()) return;
      work = sent_.front();
      sent_.pop_front();
    }
    {
      const ScopedStage timer(timers_, kStagePush);
      client_.wait_pushed(work->rows);
    }
    std::lock_guard lock(mutex_);
    last_pushed_ = work->step;
    ended_ = all_pushed();
    free_.push_back(work);
    changed_.notify_all();
  }
}

}  // namespace satrap::pipeline
