#include "src/dense/steps_in_flight.h"

#include <algorithm>

#include "satrap/core/error.h"

namespace satrap::dense {
void Staging::begin(std::int64_t bytes) {
  make_room(memory_, device_, backend::Place::kPinnedHost,
            bytes + kParts * backend::Arena::kAlignment, "the numbers of a step");
  used_ = 0;
}

std::byte* Staging::take_bytes(std::int64_t bytes) {
  std::byte* const part = memory_.data() + used_;
  used_ += bytes;
  SATRAP_CHECK(used_ <= memory_.bytes(), "a step stages ", used_, " of ", memory_.bytes(),
               " bytes");
  return part;
}

StepsInFlight::StepsInFlight(backend::Device& device)
    : device_(device), steps_{Step(device), Step(device)}, prediction_(device) {}

Staging& StepsInFlight::begin(std::int64_t rows, std::int64_t num_outputs, std::int64_t cols) {
  if (num_begun_ - num_finished_ == kMax) {  // nobody wants its result
    oldest().done.wait_until_reached();
    ++num_finished_;
  }
  ++num_begun_;
  Step& step = newest();
  constexpr std::int64_t kResults = 8;
  step.staging.begin(bytes_of(rows * (cols + num_outputs) + kResults));
  step.rows = rows;
  step.num_outputs = num_outputs;
  step.probabilities = step.staging.take<float>(rows * num_outputs);
  step.result = step.staging.take<double>(2);
  step.flag = step.staging.take<float>(2);
  step.number = step.staging.take<float>(1);
  return step.staging;
}

void StepsInFlight::queue_results(const float* probabilities,
                                  const FloatMatrix& to,
                                  const double* result,
                                  const float* flag,
                                  const backend::Stream& stream) {
  Step& step = newest();
  step.to = to;
  if (step.rows > 0) {
    device_.copy(step.probabilities, probabilities, bytes_of(step.rows * step.num_outputs), stream);
  }
  device_.copy(step.result, result, 2 * static_cast<std::int64_t>(sizeof(double)), stream);
  queue_flag(flag, stream);
}

void StepsInFlight::queue_flag(const float* flag, const backend::Stream& stream) {
  device_.copy(newest().flag, flag, bytes_of(2), stream);
  newest().done.record(stream);
}

void StepsInFlight::upload(float number, float* to, const backend::Stream& stream) {
  *newest().number = number;
  device_.copy(to, newest().number, sizeof(float), stream);
}

DenseResult StepsInFlight::finish() {
  SATRAP_CHECK(num_finished_ < num_begun_, "no step is in flight");
  Step& step = oldest();
  device_.use_on_this_thread();
  step.done.wait_until_reached();
  ++num_finished_;
  if (step.rows > 0) {
    std::copy_n(step.probabilities, step.rows * step.num_outputs,
                host_values(step.to, step.rows, step.num_outputs, "probabilities"));
  }
  const bool is_finite = step.flag[0] == 0.0F;
  return {.loss = step.result[0],
          .grad_norm = step.result[1],
          .finite = is_finite,
          .overflowed = !is_finite && step.flag[0] == step.flag[1]};
}

Staging& StepsInFlight::begin_prediction(std::int64_t count, const backend::Stream& stream) {
  stream.wait_until_idle();
  prediction_.begin(bytes_of(count));
  return prediction_;
}

const float* StepsInFlight::download(const Matrix& from, const backend::Stream& stream) {
  const std::int64_t bytes = bytes_of(from.rows * from.cols);
  make_room(download_, device_, backend::Place::kPinnedHost, bytes, "the output of the network");
  device_.copy(download_.data(), from.data, bytes, stream);
  stream.wait_until_idle();
  return reinterpret_cast<const float*>(download_.data());
}

}  // namespace satrap::dense
