#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "rank_group.h"
#include "satrap/dense/config.h"
#include "satrap/dense/dense_network.h"
#include "satrap/ps/shard_client.h"

namespace satrap::trainer {

/// The dense network of async mode: its parameters live on the shards, which run the optimizer on
/// whatever gradient comes, from any rank. Gradients are pushed and newer parameters pulled by a
/// thread of its own ("dense-sync") beside the network's computation, so that nobody waits for
/// another rank, and at most for the network to carry the gradient before.
class AsyncDense {
 public:
  /// All ranks; the chief's parameters become those of all. Everything outlives it.
  AsyncDense(dense::DenseNetwork& network,
             const dense::DenseOptimizerConfig& optimizer,
             ps::ShardClient& client,
             RankGroup& ranks,
             bool is_chief);
  ~AsyncDense();  // joins; what is under way ends with the client

  /// The newest parameters that have come, if any have since the last call.
  void refresh();

  /// Hands over the network's gradient of `step`.
  void push(std::int64_t step);

  /// Waits until all of this rank's gradients are on the shards. Rethrows errors.
  void flush();

  /// Once all ranks have flushed: the network, with its optimizer, becomes what the shards have.
  void pull_everything();

 private:
  void run();
  void exchange();
  void wait_idle();

  dense::DenseNetwork& network_;
  ps::ShardClient& client_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_gradient_ = false, has_parameters_ = false, stopped_ = false;
  std::exception_ptr error_;
  std::int64_t step_ = 0;  // of gradient_
  float scale_ = 1.0F;
  double lr_ = 0.0;
  std::vector<float> gradient_, parameters_;
  std::thread thread_;
};

}  // namespace satrap::trainer
