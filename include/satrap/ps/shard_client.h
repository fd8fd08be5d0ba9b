#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "satrap/core/float_codec.h"
#include "satrap/core/ids.h"
#include "satrap/kernels/dense_update.h"
#include "satrap/net/endpoint.h"
#include "satrap/net/store.h"
#include "satrap/ps/shard_job.h"
#include "satrap/table/row.h"
#include "satrap/table/row_store.h"
#include "satrap/table/table_spec.h"

namespace satrap::ps {

/// Weights or gradients of the rows of one step in their wire format: memory per shard, received
/// into and sent from in place. Belongs to one step at a time and is reused from step to step. The
/// client uses it while a pull, lookup or push with it is in progress.
class StepRows {
 public:
  StepRows();
  ~StepRows();
  StepRows(StepRows&&) noexcept;
  StepRows& operator=(StepRows&&) noexcept;

  /// Filled by wait(): weights()[u] are the weights of the u-th key, [dim] floats of its table,
  /// valid until the next pull or lookup with this object; nullptr if the rank's copy will do.
  std::span<const float* const> weights() const;  // [num_keys]

  /// Filled by prepare_push(): where the caller writes the gradient of the u-th key, [dim] floats.
  std::span<float* const> gradients() const;  // [num_keys]

  /// Set by wait() after a pull: v of the E_v that was read, the smallest over the shards.
  std::int64_t read_version() const;

  /// Filled by wait() after pull_changed(): v of the E_v that the u-th row is of; kKept: the rank
  /// has an older copy, of the version that it knows, which the bound allows.
  std::span<const std::int64_t> versions() const;  // [num_keys]
  static constexpr std::int64_t kKept = -1;

  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

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

/// One rank's client of all shards of a job: keys are divided by shard_of, one request per shard
/// and step is sent, answers are received in place. Every request is answered within its deadline
/// or throws net::NetError; broken connections are reopened and unanswered requests are resent, and
/// applied once. A restarted shard has none of the job's rows: its answers are an error that says
/// so, and the job must start from a checkpoint.
///
/// Thread rules: pull(), wait() and lookup() from one thread each; prepare_push() and push() from
/// one other thread, wait_pushed() from one; the rest from any. pull() and push() use separate
/// connections, so that pulls that wait because of the bound never delay a push.
class ShardClient final : public table::RowStore {
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
  /// shards in the store as "shard/<number>" (server names); waits for them up to timeout_ms.
  ShardClient(const net::Endpoint& endpoint,
              const std::shared_ptr<net::Store>& store,
              const std::vector<table::TableSpec>& tables,
              std::uint64_t seed,
              Options options);
  ~ShardClient() override;

  /// For rank 0, once, before any rank pulls: every shard drops its rows and loads the job's.
  /// Blocks until all have.
  void begin(const ShardJob& job);

  /// For the other ranks, with the session that rank 0 drew.
  void join(std::uint64_t session);

  // ---- steps; each rank sends one pull and one push for every step from first_step on, in order.

  /// Requests the rows of `keys`, ascending and unique; missing ones are created. `keys` may be
  /// empty (the step still counts). Returns at once; wait() waits. At most max_pulls() may be in
  /// flight. `least_version`: no answer from older rows than E_v of this v, even where the bound
  /// allows them; below `step`. deterministic and async jobs do not look at it.
  void pull(std::int64_t step,
            std::span<const Key> keys,
            StepRows& rows,
            std::int64_t least_version = 0);

  /// The pull of a job that keeps copies: says how old the rank's copies of the rows are, and gets
  /// only the rows that it needs newer.
  void pull_changed(std::int64_t step,
                    std::span<const Key> keys,
                    std::span<const CopyAge> ages,  // [num_keys]
                    StepRows& rows,
                    std::int64_t least_version = 0);

  /// Waits for the answers of the oldest pull, which must be of `rows`.
  void wait(StepRows& rows);

  /// Lays out the memory for the gradients of the keys pulled with `rows`.
  void prepare_push(StepRows& rows);

  /// Sends the gradients of `step`, which the shards apply when it is their turn. `skip`: there are
  /// none (the step was not finite); the memory is not sent. Returns at once, unless too many
  /// pushes are in flight.
  void push(std::int64_t step, StepRows& rows, bool skip);

  /// Waits until every shard has accepted the oldest push, which must be of `rows`. Some thread
  /// must wait while pushes are in flight: it notices a broken connection.
  void wait_pushed(StepRows& rows);

  /// This rank will pull no step after `step`: deterministic updates need not wait for its pulls.
  void end_pulls(std::int64_t step);

  /// Blocks until all shards have applied all updates up to `step`.
  void wait_applied(std::int64_t step);

  // ---- outside of steps

  /// As pull and wait, but for the rows as they are now; missing ones are not created but read as
  /// they would be created.
  void lookup(std::span<const Key> keys, StepRows& rows);

  /// RowStore: whole rows, unchanged whatever the encoding. A request has at most
  /// ShardServerOptions::max_request_bytes per shard. A put is applied once, however often its
  /// connection breaks.
  void fetch(std::span<const Key> keys, std::span<std::byte* const> rows) override;
  void put(std::int64_t step,
           std::span<const Key> keys,
           std::span<const std::byte* const> rows) override;

  /// A consistent copy of the rows as of `step`, which must be the last step applied.
  /// begin_snapshot takes it, in milliseconds, or once the shards have written the one before, of
  /// which write_snapshot may have missed its deadline; write_snapshot writes it to `directory`, on
  /// a file system that all shards share, blocks while steps continue, and returns the files of all
  /// shards.
  void begin_snapshot(std::int64_t step);
  std::vector<SnapshotFile> write_snapshot(const std::string& directory);

  std::vector<ShardStats> stats();  // [num_shards]

  // ---- async mode: the dense parameters too, divided evenly over the shards. Always fp32.

  /// Flat vectors of the same size, and how often the optimizer has run. `first` and `second` are
  /// its state, as in update_dense; all of it is stored and returned, used or not.
  struct DenseVectors {
    std::vector<float> parameters, first, second;
    double num_updates = 0.0;
  };

  /// For one rank, once, between begin and the first exchange of any rank. Blocks until it is done.
  void put_dense(const DenseVectors& values, const DenseOptimizer& optimizer);

  /// Sends a gradient [num_parameters], which the shards apply once, on arrival, with this factor
  /// and learning rate, and requests the resulting parameters. `step` ascends from call to call.
  /// Returns at once while fewer than kMaxDenseExchanges are in flight.
  void exchange_dense(std::int64_t step,
                      std::span<const float> gradient,
                      float scale,
                      double lr,
                      DenseExchange& exchange);
  static constexpr std::int64_t kMaxDenseExchanges = 8;

  /// Waits until the shards have applied the gradient of the oldest exchange and sent the resulting
  /// parameters, received into `parameters` [num_parameters]. A rank that is ahead of the shards
  /// waits for them.
  void wait_dense(DenseExchange& exchange, std::span<float> parameters);

  /// The current parameters and the optimizer's state: for a checkpoint, while no rank pushes.
  DenseVectors pull_dense_state(std::int64_t num_parameters);

  std::int64_t max_pulls() const;
  std::int64_t bytes_pulled() const;  // of the answers to pulls so far
  std::int64_t num_reconnects() const;

  /// Ends all waiting: pending and later calls throw net::NetError (kClosed). For a process that
  /// ends while other threads wait for shards. From any thread.
  void stop();

  void close_connections();  // as if they had broken, for tests

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace satrap::ps
