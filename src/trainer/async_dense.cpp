#include "async_dense.h"

#include <algorithm>

#include "satrap/core/thread_name.h"

namespace satrap::trainer {

AsyncDense::AsyncDense(dense::DenseNetwork& network,
                       const dense::DenseOptimizerConfig& optimizer,
                       ps::ShardClient& client,
                       RankGroup& ranks,
                       bool is_chief)
    : network_(network),
      client_(client),
      gradient_(static_cast<std::size_t>(network.num_parameters())),
      parameters_(gradient_.size()) {
  if (is_chief) {
    const dense::DenseNetwork::TrainingState state = network.training_state();
    const auto copy = [&](std::span<const float> values) {
      std::vector<float> all(gradient_.size(), 0.0F);
      std::ranges::copy(values, all.begin());
      return all;
    };
    client.put_dense(
        {.parameters = copy(state.parameters),
         .first = copy(state.first),
         .second = copy(state.second),
         .num_updates =
             state.num_updates == nullptr ? 0.0 : static_cast<double>(*state.num_updates)},
        dense::plain_optimizer(optimizer));
  }
  ranks.copy_from_chief(network);
  ranks.barrier();
  thread_ = std::thread([this] {
    set_thread_name("dense-sync");
    run();
  });
}

AsyncDense::~AsyncDense() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void AsyncDense::refresh() {
  std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  if (!has_parameters_) return;
  std::ranges::copy(parameters_, network_.training_state().parameters.begin());
  has_parameters_ = false;
}

void AsyncDense::wait_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || !has_gradient_; });
  if (error_) std::rethrow_exception(error_);
}

void AsyncDense::push(std::int64_t step) {
  wait_idle();
  const std::span<const float> gradient = network_.gradient();
  std::lock_guard lock(mutex_);
  std::ranges::copy(gradient, gradient_.begin());
  step_ = step;
  scale_ = network_.gradient_scale();
  lr_ = network_.learning_rate(step);
  has_gradient_ = true;
  changed_.notify_all();
}

void AsyncDense::flush() { wait_idle(); }

void AsyncDense::pull_everything() {
  const ps::ShardClient::DenseVectors values = client_.pull_dense_state(network_.num_parameters());
  const dense::DenseNetwork::TrainingState state = network_.training_state();
  std::ranges::copy(values.parameters, state.parameters.begin());
  std::copy_n(values.first.begin(), state.first.size(), state.first.begin());
  std::copy_n(values.second.begin(), state.second.size(), state.second.begin());
  if (state.num_updates != nullptr) *state.num_updates = static_cast<float>(values.num_updates);
}

void AsyncDense::run() {
  try {
    while (true) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopped_ || has_gradient_; });
        if (!has_gradient_) return;
      }
      exchange();
    }
  } catch (...) {
    std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    changed_.notify_all();
  }
}

/// gradient_ is this thread's while has_gradient_; parameters_ are read by refresh() under the
/// lock.
void AsyncDense::exchange() {
  client_.push_dense(step_, gradient_, scale_, lr_);
  std::vector<float> newer(parameters_.size());
  client_.pull_dense(newer);
  std::lock_guard lock(mutex_);
  std::swap(parameters_, newer);
  has_parameters_ = true;
  has_gradient_ = false;
  changed_.notify_all();
}

}  // namespace satrap::trainer
