#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "satrap/job/cluster_config.h"

namespace satrap::cli {

struct ShardOptions {
  std::int64_t shard = 0;
  std::int64_t num_shards = 1;
  std::int64_t num_workers = 0;  // 0: one per CPU
  job::ClusterConfig cluster;
  const std::atomic<bool>* stop = nullptr;  // set by a signal handler
};

/// Serves one parameter-server shard of a job until `stop` is set. Needs no libtorch. `config`: a
/// file; empty: what rank 0 publishes (job::publish_job), for which it waits. Throws
/// Error(kInvalidConfig) for a wrong job or number, NetError if the store cannot be reached.
void serve_shard(const std::string& config,
                 const std::vector<std::string>& overrides,
                 const ShardOptions& options);

}  // namespace satrap::cli
