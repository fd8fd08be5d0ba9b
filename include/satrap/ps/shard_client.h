#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "satrap/core/float_type.h"
#include "satrap/net/endpoint.h"
#include "satrap/net/rendezvous.h"
#include "satrap/ps/dense_client.h"
#include "satrap/ps/shard_job.h"
#include "satrap/ps/step_client.h"
#include "satrap/table/row_store.h"
#include "satrap/table/table_spec.h"

namespace satrap::ps {

/// One rank's client of all shards of a job: keys are divided by shard_of, one request per shard
/// and step is sent, answers are received in place. Every request is answered within its deadline
/// or throws net::NetError; broken connections are reopened and unanswered requests are resent, and
/// applied once. A restarted shard has none of the job's rows: its answers are an error that says
/// so, and the job must start from a checkpoint.
///
/// Its steps, its dense parameters and its whole rows are interfaces of their own, for those that
/// need one of them. Of RowStore: rows are unchanged whatever the encoding; a request has at most
/// ShardServerOptions::max_request_bytes per shard; a put is applied once, however often its
/// connection breaks. What follows may be called from any thread.
class ShardClient : public StepClient, public DenseClient, public table::RowStore {
 public:
  struct Options {
    std::int64_t rank = 0;
    std::int64_t num_shards = 1;

    /// How weights and gradients are sent; whole rows are sent unchanged.
    FloatType encoding = FloatType::kFp32;

    /// Deadline of one request, which includes waiting for other ranks.
    std::int64_t timeout_ms = 600'000;

    /// A connection without an answer for this long counts as broken.
    std::int64_t attempt_ms = 60'000;

    /// Once it is set, a shard that is not there is no longer waited for: NetError(kStopped).
    const std::atomic<bool>* stop = nullptr;
  };

  /// `tables[i]` has TableId i; all ranks and shards have the same, which is checked. Finds the
  /// shards in the store as "shard/<number>" (server names), each when it is first asked; waits for
  /// them up to timeout_ms. The endpoint outlives it.
  static std::unique_ptr<ShardClient> create(const net::Endpoint& endpoint,
                                             const std::shared_ptr<net::Rendezvous>& store,
                                             const std::vector<table::TableSpec>& tables,
                                             std::uint64_t seed,
                                             const Options& options);

  /// For rank 0, once, before any rank pulls: every shard drops its rows and loads the job's.
  /// Blocks until all have.
  virtual void begin(const ShardJob& job) = 0;

  /// For the other ranks, with the session that rank 0 drew.
  virtual void join(std::uint64_t session) = 0;

  /// A consistent copy of the rows as of `step`, which must be the last step applied.
  /// begin_snapshot takes it, in milliseconds, or once the shards have written the one before, of
  /// which write_snapshot may have missed its deadline; write_snapshot writes it to `directory`, on
  /// a file system that all shards share, blocks while steps continue, and returns the files of all
  /// shards.
  virtual void begin_snapshot(std::int64_t step) = 0;
  virtual std::vector<SnapshotFile> write_snapshot(const std::string& directory) = 0;

  virtual std::vector<ShardStats> stats() = 0;  // [num_shards]

  virtual std::int64_t num_reconnects() const = 0;
  virtual void close_connections() = 0;  // as if they had broken, for tests
};

}  // namespace satrap::ps
