#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include "satrap/core/mutex.h"
#include "satrap/dense/dense_network.h"
#include "satrap/job/model_config.h"
#include "satrap/pipeline/rank_group.h"
#include "satrap/ps/dense_client.h"

namespace satrap::pipeline {

/// The dense network of async mode: its parameters live on the shards, which run the optimizer on
/// every gradient that arrives, from any rank. Gradients and newer parameters travel while the
/// network computes, several exchanges at a time; a thread ("dense-sync") waits for them. No rank
/// waits for another, or for the shards unless it is DenseClient::kMaxDenseExchanges steps ahead.
class AsyncDense {
 public:
  /// All ranks; the chief's parameters become those of all. Everything outlives it.
  AsyncDense(dense::DenseNetwork& network,
             const job::DenseOptimizerConfig& optimizer,
             ps::DenseClient& client,
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
  ps::DenseClient& client_;
  Mutex mutex_;
  CondVar changed_;
  std::array<ps::DenseExchange, ps::DenseClient::kMaxDenseExchanges> exchanges_;  // in turn
  std::uint64_t num_sent_ SATRAP_GUARDED_BY(mutex_) = 0;
  std::uint64_t num_answered_ SATRAP_GUARDED_BY(mutex_) = 0;
  bool has_parameters_ SATRAP_GUARDED_BY(mutex_) = false;
  bool stopped_ SATRAP_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ SATRAP_GUARDED_BY(mutex_);
  std::vector<float> parameters_ SATRAP_GUARDED_BY(mutex_);  // [num_parameters]
  std::thread thread_;
};

}  // namespace satrap::pipeline
