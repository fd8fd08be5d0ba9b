#include "satrap/pipeline/async_dense.h"

#include <utility>

#include "satrap/core/thread_group.h"

namespace satrap::pipeline {

AsyncDense::AsyncDense(dense::DenseNetwork& network,
                       const job::DenseOptimizerConfig& optimizer,
                       ps::DenseClient& client,
                       RankGroup& ranks,
                       bool is_chief)
    : network_(network),
      client_(client),
      parameters_(static_cast<std::size_t>(network.num_parameters())) {
  if (is_chief) {
    dense::DenseNetwork::TrainingState state = network.save_training_state();
    state.first.resize(parameters_.size());
    state.second.resize(parameters_.size());
    client.put_dense({.parameters = std::move(state.parameters),
                      .first = std::move(state.first),
                      .second = std::move(state.second),
                      .num_updates = state.num_updates},
                     job::plain_optimizer(optimizer));
  }
  ranks.copy_from_chief(network);
  ranks.barrier();
  thread_ = start_thread("dense-sync", [this] { run(); });
}

AsyncDense::~AsyncDense() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void AsyncDense::refresh() {
  const MutexLock lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  if (!has_parameters_) return;
  network_.load_parameters(parameters_);
  has_parameters_ = false;
}

void AsyncDense::push(std::int64_t step) {
  if (network_.flag() != 0.0F) return;
  MutexLock lock(mutex_);
  while (!error_ && num_sent_ - num_answered_ >= exchanges_.size()) changed_.wait(mutex_);
  if (error_) std::rethrow_exception(error_);
  ps::DenseExchange& exchange = exchanges_[num_sent_ % exchanges_.size()];
  lock.unlock();  // the other thread receives answers meanwhile
  client_.exchange_dense(step, network_.gradient(), network_.gradient_scale(),
                         network_.learning_rate(step), exchange);
  lock.lock();
  ++num_sent_;
  changed_.notify_all();
}

void AsyncDense::flush() {
  const MutexLock lock(mutex_);
  while (!error_ && num_answered_ != num_sent_) changed_.wait(mutex_);
  if (error_) std::rethrow_exception(error_);
}

void AsyncDense::pull_everything() {
  ps::DenseVectors values = client_.pull_dense_state(network_.num_parameters());
  network_.load_training_state({.parameters = std::move(values.parameters),
                                .first = std::move(values.first),
                                .second = std::move(values.second),
                                .num_updates = values.num_updates});
}

void AsyncDense::run() {
  try {
    MutexLock lock(mutex_);
    std::vector<float> newer(parameters_.size());
    while (true) {
      while (!stopped_ && num_answered_ == num_sent_) changed_.wait(mutex_);
      if (num_answered_ == num_sent_) return;
      ps::DenseExchange& exchange = exchanges_[num_answered_ % exchanges_.size()];
      lock.unlock();
      client_.wait_dense(exchange, newer);
      lock.lock();
      ++num_answered_;
      std::swap(parameters_, newer);
      has_parameters_ = true;
      changed_.notify_all();
    }
  } catch (...) {
    const MutexLock lock(mutex_);
    error_ = std::current_exception();
    changed_.notify_all();
  }
}

}  // namespace satrap::pipeline
