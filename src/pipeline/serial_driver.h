#pragma once

#include <cstdint>
#include <thread>

#include "satrap/pipeline/step_driver.h"
#include "src/pipeline/serial_order.h"

namespace satrap::pipeline {

/// For rows of this process, in tables or in a cache: one thread ("embedding") owns their contents
/// and runs every lookup and every update, one at a time, in the order that SerialOrder decides.
class SerialDriver final : public StepDriver {
 public:
  SerialDriver(StepQueue& queue,
               embedding::RowAccess& access,
               Options options,
               StageTimers& timers);
  ~SerialDriver() override;  // stops and joins

  bool submit(Work* work) override;
  void close() override { queue_.close_planned(); }
  void wait_applied(std::int64_t step) override { queue_.wait_retired(step); }
  bool wait_applied_for(std::int64_t step, std::chrono::milliseconds time) override {
    return queue_.wait_retired_until(step, std::chrono::steady_clock::now() + time);
  }
  void wait_before_update(std::int64_t step) override {
    queue_.wait_passed(step - 1, options_.staleness.last_reader(step - 1));
  }
  void stop() override;

 private:
  void run();

  SerialOrder order_;   // of the thread
  std::thread thread_;  // last: starts when everything above exists
};

}  // namespace satrap::pipeline
