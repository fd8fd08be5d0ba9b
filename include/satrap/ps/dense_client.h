#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "satrap/kernels/dense_update.h"

namespace satrap::ps {

/// One exchange of a dense gradient for newer parameters: its memory and pending answers. Reused
/// from exchange to exchange.
class DenseExchange {
 public:
  DenseExchange();
  ~DenseExchange();  // waits for pending answers
  DenseExchange(DenseExchange&&) noexcept;
  DenseExchange& operator=(DenseExchange&&) noexcept;

  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

/// Flat vectors of the same size, and how often the optimizer has run. `first` and `second` are its
/// state, as in update_dense; all of it is stored and returned, used or not.
struct DenseVectors {
  std::vector<float> parameters, first, second;
  double num_updates = 0.0;
};

/// The dense parameters of a job in async mode, divided evenly over the shards; always fp32. From
/// any thread, but a DenseExchange is used by one at a time.
class DenseClient {
 public:
  static constexpr std::int64_t kMaxDenseExchanges = 8;

  virtual ~DenseClient() = default;

  /// For one rank, once, between begin and the first exchange of any rank. Blocks until it is done.
  virtual void put_dense(const DenseVectors& values, const DenseOptimizer& optimizer) = 0;

  /// Sends a gradient [num_parameters], which the shards apply once, on arrival, with this factor
  /// and learning rate, and requests the resulting parameters. `step` ascends from call to call.
  /// Returns at once while fewer than kMaxDenseExchanges are in flight.
  virtual void exchange_dense(std::int64_t step,
                              std::span<const float> gradient,
                              float scale,
                              double lr,
                              DenseExchange& exchange) = 0;

  /// Waits until the shards have applied the gradient of the oldest exchange and sent the resulting
  /// parameters, received into `parameters` [num_parameters]. A rank that is ahead of the shards
  /// waits for them.
  virtual void wait_dense(DenseExchange& exchange, std::span<float> parameters) = 0;

  /// The current parameters and the optimizer's state: for a checkpoint, while no rank pushes.
  virtual DenseVectors pull_dense_state(std::int64_t num_parameters) = 0;
};

}  // namespace satrap::ps
