#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "satrap/collective/communicator.h"
#include "satrap/job/cluster_config.h"
#include "satrap/job/job_config.h"
#include "satrap/net/endpoint.h"
#include "satrap/net/rendezvous.h"

namespace satrap::pipeline {

/// How a rank of the job reaches other processes.
net::EndpointOptions endpoint_options(const job::JobConfig& job, const job::ClusterConfig& config);

/// This rank among the ranks of a job. Rank 0, the chief, decides for all and writes the run
/// directory; a single process is its own chief and uses no network.
class Cluster {
 public:
  /// Throws Error(kInvalidConfig) if the job cannot be trained by such a cluster (several ranks
  /// need `embedding.store: ps`, which needs shards), NetError if the store cannot be reached.
  /// `stop`, if given, ends searches for other processes with NetError(kStopped): the store,
  /// shards, ranks that have not come. It outlives this object.
  Cluster(const job::JobConfig& job,
          const job::ClusterConfig& config,
          const std::atomic<bool>* stop = nullptr);

  bool is_chief() const { return config_.rank == 0; }
  std::int64_t rank() const { return config_.rank; }
  std::int64_t size() const { return config_.num_ranks; }
  const job::ClusterConfig& config() const { return config_; }

  /// The deadline of a wait for other processes that begins now.
  net::Deadline deadline() const {
    const net::Deadline deadline = net::Deadline::after_ms(timeout_ms_);
    return stop_ == nullptr ? deadline : deadline.unless(*stop_);
  }
  const std::atomic<bool>* stop() const { return stop_; }
  std::int64_t timeout_ms() const { return timeout_ms_; }

  /// Only with embedding.store: ps, or several ranks.
  const net::Endpoint& endpoint() const { return *endpoint_; }
  const std::shared_ptr<net::Rendezvous>& store() const { return store_; }

  /// At the start of a job: what `make` returns on the chief, on all ranks; it is not called on the
  /// others, which wait for as long as the chief lives, be it longer than the timeout. Called once,
  /// by all.
  std::string share(const std::function<std::string()>& make);

  /// A new group of all ranks, under a name that is used once in the job. After share().
  std::unique_ptr<collective::Communicator> make_communicator(const std::string& name);

 private:
  std::string wait_for_start() const;

  const job::ClusterConfig config_;
  const std::int64_t timeout_ms_;
  const std::atomic<bool>* const stop_;
  std::optional<net::Endpoint> endpoint_;
  std::shared_ptr<net::Rendezvous> store_;      // of the whole job: shards
  std::shared_ptr<net::Rendezvous> own_store_;  // of this start of it: ranks
  std::string start_;                           // a nonce of the chief: in the names of groups
};

}  // namespace satrap::pipeline
