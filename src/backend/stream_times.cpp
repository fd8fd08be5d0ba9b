#include "satrap/backend/stream_times.h"

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
  const std::lock_guard lock(mutex_);
  Work& work = work_[kind];
  add_done(work);
  if (work.free.empty()) work.free.emplace_back(device_);
  work.open.push_back(std::move(work.free.front()));
  work.free.pop_front();
  work.is_ended = false;
  work.open.back().begin.record(stream_);
}

void StreamTimes::end(Kind kind) noexcept {
  const std::lock_guard lock(mutex_);
  Work& work = work_[kind];
  try {
    work.open.back().end.record(stream_);
    work.is_ended = true;
  } catch (const std::exception& error) {
    log_error("the time of a {} is not measured: {}", kNames[kind], error.what());
  }
}

void StreamTimes::add_done(Work& work) {
  while (work.open.size() > (work.is_ended ? 0U : 1U) && work.open.front().end.is_reached()) {
    Marks& marks = work.open.front();
    work.seconds += Event::milliseconds_between(marks.begin, marks.end) / 1e3;
    work.free.push_back(std::move(marks));
    work.open.pop_front();
  }
}

double StreamTimes::seconds(Kind kind) {
  device_.use_on_this_thread();
  const std::lock_guard lock(mutex_);
  add_done(work_[kind]);
  return work_[kind].seconds;
}

double StreamTimes::seconds() {
  double sum = 0.0;
  for (std::uint8_t kind = 0; kind < kNumKinds; ++kind) sum += seconds(static_cast<Kind>(kind));
  return sum;
}

}  // namespace satrap::backend
