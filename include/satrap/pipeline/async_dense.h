#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "satrap/dense/dense_network.h"
#include "satrap/job/model_config.h"
#include "satrap/pipeline/rank_group.h"
#include "satrap/ps/shard_client.h"

namespace satrap::pipeline {

/// The dense network of async mode: its parameters live on the shards, which run the optimizer on
/// every gradient that arrives, from any rank. Gradients and newer parameters travel while the
/// network computes, several exchanges at a time; a thread ("dense-sync") waits for them. No rank
/// waits for another, or for the shards unless it is ShardClient::kMaxDenseExchanges steps ahead.
class AsyncDense {
 public:
  /// All ranks; the chief's parameters become those of all. Everything outlives it.
  AsyncDense(dense::DenseNetwork& network,
             const job::DenseOptimizerConfig& optimizer,
             ps::ShardClient& client,
             RankGroup& ranks,
             bool is_chief);
  ~AsyncDense();  // joins; what is under way ends with the client

  /// The newest parameters that have come, if any have since the last call.
  void refresh();

  /// Sends the network's gradient of `step`, unless it is not finite; blocks while too many are
  /// under way.
  void push(std::int64_t step);

  /// Waits until all of this rank's gradients are on the shards. Rethrows errors.
  void flush();

  /// Once all ranks have flushed: the network, with its optimizer, becomes what the shards have.
  void pull_everything();

 private:
  void run();

  dense::DenseNetwork& network_;
  ps::ShardClient& client_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<ps::DenseExchange, ps::ShardClient::kMaxDenseExchanges> exchanges_;  // in turn
  std::uint64_t num_sent_ = 0, num_answered_ = 0;
  bool has_parameters_ = false, stopped_ = false;
  std::exception_ptr error_;
  std::vector<float> parameters_;  // [num_parameters]
  std::thread thread_;
};

}  // namespace satrap::pipeline
