#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace satrap::job {

/// This process's place among the processes of a job, and where they meet. Comes from the
/// environment that satrap-run or torchrun sets; a process started by hand is rank 0 of 1.
struct ClusterConfig {
  std::int64_t rank = 0;
  std::int64_t num_ranks = 1;
  std::int64_t num_local_ranks = 0;        // on this node, LOCAL_WORLD_SIZE; 0: unknown
  std::optional<std::int64_t> local_rank;  // on this node, LOCAL_RANK; nullopt: unknown
  std::int64_t num_shards = 0;             // SATRAP_SHARDS
  std::string store;                       // URL (net::open_rendezvous), SATRAP_STORE; empty: alone
  std::string token;                       // SATRAP_TOKEN
  std::string job;  // distinguishes the jobs, and their starts, that share a store
  std::string interface = "127.0.0.1";  // to listen on, SATRAP_INTERFACE

  bool has_several_nodes() const { return num_local_ranks != 0 && num_local_ranks < num_ranks; }

  using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

  /// RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE (else all on one node), TORCHELASTIC_RUN_ID
  /// and TORCHELASTIC_RESTART_COUNT as torchrun sets them, and the variables above; SATRAP_ATTEMPT
  /// overrides torchrun's count. Throws Error(kInvalidConfig) for text that is not a number, or
  /// numbers that contradict each other.
  static ClusterConfig from(const Lookup& variable);
  static ClusterConfig from_environment();
};

}  // namespace satrap::job
