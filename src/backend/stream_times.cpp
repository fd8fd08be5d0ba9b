#include "satrap/backend/stream_times.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "satrap/core/log.h"

namespace satrap::backend {

StreamTimes::Span::Span(StreamTimes* times, Kind kind) : times_(times), kind_(kind) {
  if (times_ != nullptr) times_->begin(kind_);
}

StreamTimes::Span::~Span() {
  if (times_ != nullptr) times_->end(kind_);
}

void StreamTimes::begin(Kind kind) {
  const MutexLock lock(mutex_);
  add_done();
  if (free_.empty()) free_.push_back(std::make_unique<Work>(device_, kind));
  std::unique_ptr<Work> work = std::move(free_.back());
  free_.pop_back();
  work->kind = kind;
  work->is_ended = false;
  work->begin.record(stream_);
  open_.push_back(std::move(work));
}

void StreamTimes::end(Kind kind) noexcept {
  const MutexLock lock(mutex_);
  const auto open = std::ranges::find_if(
      open_, [kind](const auto& work) { return work->kind == kind && !work->is_ended; });
  try {
    (*open)->end->record(stream_);
    (*open)->is_ended = true;
  } catch (const std::exception& error) {
    log_error("the time of a {} is not measured: {}", kNames[kind], error.what());
  }
}

/// Adds those that are done; a later one waits for its turn.
void StreamTimes::add_done() {
  while (!open_.empty() && open_.front()->is_ended && open_.front()->end->is_reached()) {
    std::unique_ptr<Work> work = std::move(open_.front());
    open_.pop_front();
    const double spent = Event::milliseconds_between(work->begin, *work->end);
    seconds_[work->kind] += spent / 1e3;
    // The part of it after all that was added before.
    const double after =
        latest_end_ ? Event::milliseconds_between(*latest_end_, *work->end) : spent;
    if (after > 0.0 && work->kind != kExchange) {
      busy_seconds_ += std::min(spent, after) / 1e3;
      latest_end_ = work->end;
      work->end = std::make_shared<Event>(device_, true);
    }
    free_.push_back(std::move(work));
  }
}

double StreamTimes::seconds(Kind kind) {
  device_.use_on_this_thread();
  const MutexLock lock(mutex_);
  add_done();
  return seconds_[kind];
}

double StreamTimes::busy_seconds() {
  device_.use_on_this_thread();
  const MutexLock lock(mutex_);
  add_done();
  return busy_seconds_;
}

}  // namespace satrap::backend
