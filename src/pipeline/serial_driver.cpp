#include "src/pipeline/serial_driver.h"

#include <utility>

#include "satrap/core/thread_group.h"

namespace satrap::pipeline {

SerialDriver::SerialDriver(StepQueue& queue,
                           embedding::RowAccess& access,
                           Options options,
                           StageTimers& timers)
    : StepDriver(queue, access, std::move(options), timers),
      order_({.staleness = options_.staleness,
              .deterministic = options_.deterministic,
              .first_step = options_.first_step}) {
  thread_ = start_thread("embedding", [this] {
    try {
      run();
    } catch (...) {
      queue_.fail(std::current_exception());
    }
  });
}

SerialDriver::~SerialDriver() {
  stop();
  thread_.join();
}

bool SerialDriver::submit(Work* work) {
  // Besides those that wait, the thread may hold one.
  if (!queue_.wait_for_room(options_.planned_capacity + 1)) return false;
  work->rows->request(work->step);
  queue_.add_planned(work);
  return true;
}

void SerialDriver::stop() {
  const bool has_ended = queue_.has_ended();
  queue_.stop();
  if (!has_ended) access_.stop();
}

void SerialDriver::run() {
  auto action = SerialOrder::Action::kWait;
  const auto is_decided = [&](const StepQueue::State& queue) {
    action = order_.next(queue);
    return action != SerialOrder::Action::kWait;
  };
  while (queue_.wait(is_decided) && action != SerialOrder::Action::kEnd) {
    if (action == SerialOrder::Action::kLookUp) {
      Work* work = queue_.first_planned();
      if (work == nullptr) return;  // stopped since
      look_up(work, order_.applied());
      order_.note_looked_up();
    } else {
      Work* work = queue_.take_gradient();
      if (work == nullptr) return;
      update(work);
      order_.note_updated();
      queue_.retire(work);
    }
  }
}

}  // namespace satrap::pipeline
