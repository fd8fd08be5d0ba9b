#pragma once

#include <deque>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "satrap/pipeline/stages.h"
#include "satrap/pipeline/step_driver.h"
#include "satrap/pipeline/step_queue.h"
#include "tests/pipeline/fake_row_access.h"

namespace satrap::pipeline {

/// A driver over a FakeRowAccess; the test acts as planner and dense stage.
class DriverTest : public testing::Test {
 protected:
  /// The work of `step`, with one example without ids.
  Work* work(std::int64_t step) {
    while (std::ssize(works_) < step) {
      Work& work = works_.emplace_back();
      work.step = std::ssize(works_);
      work.batch.num_examples = 1;
      work.batch.num_features = 1;
      work.batch.labels = {0};
      work.batch.offsets = {0, 0};
      work.rows = access_.make_rows();
    }
    return &works_[static_cast<std::size_t>(step - 1)];
  }

  bool plan(StepDriver& driver, std::int64_t step) {
    driver.make_plan(*work(step));
    return driver.submit(work(step));
  }

  /// The next step for the dense stage, whose number must be `step`.
  Work* take(std::int64_t step) {
    Work* const work = queue_->take_looked_up(nullptr);
    EXPECT_TRUE(work != nullptr && work->step == step);
    return work;
  }
  void give_gradient(Work* work) {
    work->grad_pooled.resize(work->batch.num_examples, work->inputs.pooled().cols);
    work->grad_pooled.values() = work->inputs.pooled_values();
    queue_->submit_gradient(work);
    queue_->finish(work);
  }
  void train(std::int64_t step) { give_gradient(take(step)); }

  /// The queue, which begins with `options.first_step`, for a driver.
  StepQueue& make_queue(const StepDriver::Options& options) {
    queue_ = std::make_unique<StepQueue>(options.first_step, options.staleness);
    return *queue_;
  }

  FakeRowAccess access_;
  StageTimers timers_{kNumStages};
  std::deque<Work> works_;
  std::unique_ptr<StepQueue> queue_;
};

/// The message of the Error with this code that `body` throws; "" if it throws none.
template <class Body>
std::string message_of(ErrorCode code, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code() == code ? error.what() : concat("another code: ", error.what());
  }
  return "";
}

}  // namespace satrap::pipeline
