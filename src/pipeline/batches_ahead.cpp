#include "src/pipeline/batches_ahead.h"

#include <utility>

namespace satrap::pipeline {

BatchesAhead::BatchesAhead(GlobalBatches& batches,
                           StepDriver& driver,
                           std::int64_t first_step,
                           std::int64_t last_step)
    : batches_(batches), driver_(driver), next_read_(first_step), last_step_(last_step) {}

bool BatchesAhead::may_read() const {
  return !has_ended_ && (last_step_ == 0 || next_read_ <= last_step_);
}

bool BatchesAhead::next(Work& work) {
  batches_.want_ahead(driver_.look_ahead());
  for (int i = 0; i < kReadsPerStep && std::ssize(ahead_) <= batches_.num_ahead() && may_read();
       ++i) {
    read();
  }
  if (ahead_.empty()) return false;
  std::swap(work.batch, ahead_.front().batch);
  std::swap(work.shares, ahead_.front().shares);
  free_.push_back(std::move(ahead_.front()));
  ahead_.pop_front();
  return true;
}

void BatchesAhead::read() {
  Batch batch;
  if (!free_.empty()) {
    batch = std::move(free_.back());
    free_.pop_back();
  }
  has_ended_ = !batches_.next(batch.batch, batch.shares);
  if (has_ended_) return;
  driver_.look_at(batch.batch, next_read_);
  ahead_.push_back(std::move(batch));
  ++next_read_;
}

}  // namespace satrap::pipeline
