#pragma once

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

/// Weights or gradients of the rows of one step, as they travel: memory per shard, received into
/// and sent from in place. Belongs to one step at a time and is reused from step to step; while a
/// pull, lookup or push with it is under way, in the client's hands.
class StepRows {
 public:
  StepRows();
  ~StepRows();
  StepRows(StepRows&&) noexcept;
  StepRows& operator=(StepRows&&) noexcept;

  /// Filled by wait(): weights()[u] are the weights of the u-th key, [dim] floats of its table,
  /// valid until the next pull or lookup with this object.
  std::span<const float* const> weights() const;  // [num_keys]

  /// Filled by prepare_push(): where the gradient of the u-th key is to be written, [dim] floats.
  std::span<float* const> gradients() const;  // [num_keys]

  /// Set by wait() after a pull: v of the E_v that was read, the smallest over the shards.
  std::int64_t read_version() const;

  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

/// A gradient of the dense network on its way to the shards, and newer parameters on theirs back:
/// memory and answers under way. Reused from exchange to exchange.
class DenseExchange {
 public:
  DenseExchange();
  ~DenseExchange();  // waits for what is under way
  DenseExchange(DenseExchange&&) noexcept;
  DenseExchange& operator=(DenseExchange&&) noexcept;

  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

/// One rank's way to all shards of a job: keys are divided by shard_of, a request per shard and
/// step goes out, answers are received in place. Every request is answered within its deadline or
/// throws net::NetError; broken connections are made anew and what was not answered is sent again,
/// and applied once. A shard that was started again has none of the job's rows: its answers are an
/// error that says so, and the job has to start from a checkpoint.
///
/// Thread rules: pull(), wait() and lookup() from one thread each; prepare_push() and push() from
/// one other thread, wait_pushed() from one; the rest from any. pull() and push() use connections
/// of their own, so that pulls which the bound makes wait never hold up a push.
class ShardClient final : public table::RowStore {
 public:
  struct Options {
    std::int64_t rank = 0;
    std::int64_t num_shards = 1;

    /// How weights and gradients are sent; whole rows are sent as they are.
    FloatType encoding = FloatType::kFp32;

    /// For one request, waiting for other ranks included: how long nobody may make progress.
    std::int64_t timeout_ms = 600'000;

    /// An unanswered connection is taken for broken after this time.
    std::int64_t attempt_ms = 60'000;
  };

  /// `tables[i]` has TableId i; all ranks and shards have the same, which is checked. Finds the
  /// shards in the store as "shard/<number>" (server names); waits for them up to timeout_ms.
  ShardClient(const net::Endpoint& endpoint,
              const std::shared_ptr<net::Store>& store,
              const std::vector<table::TableSpec>& tables,
              std::uint64_t seed,
              Options options);
  ~ShardClient() override;

  /// Rank 0, once, before any rank pulls: every shard forgets what it had and takes the job's rows.
  /// Blocks until all have.
  void begin(const ShardJob& job);

  /// The other ranks, with the session that rank 0 drew.
  void join(std::uint64_t session);

  // ---- steps; each rank sends one pull and one push for every step from first_step on, in order.

  /// Asks for the rows of `keys`, ascending and unique; missing ones are created. `keys` may be
  /// empty (the step counts all the same). Returns at once; wait() waits. At most max_pulls() may
  /// be under way.
  void pull(std::int64_t step, std::span<const Key> keys, StepRows& rows);

  /// Waits for the answers of the oldest pull, which must be of `rows`.
  void wait(StepRows& rows);

  /// Lays out the memory for the gradients of the keys pulled with `rows`.
  void prepare_push(StepRows& rows);

  /// Sends the gradients of `step`, which the shards then apply when it is their turn. `skip`:
  /// there is none (the step was not finite); the memory is not sent. Returns at once, unless too
  /// many pushes are under way.
  void push(std::int64_t step, StepRows& rows, bool skip);

  /// Waits until every shard has taken the oldest push, which must be of `rows`. Somebody has to
  /// wait while pushes are under way: that is who notices a broken connection.
  void wait_pushed(StepRows& rows);

  /// This rank will pull no step after `step`: deterministic updates need not wait for its pulls.
  void end_pulls(std::int64_t step);

  /// Blocks until all shards have applied all updates up to `step`.
  void wait_applied(std::int64_t step);

  // ---- outside of steps

  /// As pull and wait, of whatever the rows are now; missing ones are not created but read as they
  /// would be.
  void lookup(std::span<const Key> keys, StepRows& rows);

  /// RowStore: whole rows, as they are, whatever the encoding. A request has at most
  /// ShardServerOptions::max_request_bytes per shard. A put is applied once, however often its
  /// connection breaks.
  void fetch(std::span<const Key> keys, std::span<std::byte* const> rows) override;
  void put(std::int64_t step,
           std::span<const Key> keys,
           std::span<const std::byte* const> rows) override;

  /// A consistent copy of the rows as of `step`, which must have been applied and no later one:
  /// taken by begin_snapshot, in milliseconds; written to `directory`, on a file system that all
  /// shards see, by write_snapshot, which blocks while steps go on. Returns the files of all
  /// shards.
  void begin_snapshot(std::int64_t step);
  std::vector<SnapshotFile> write_snapshot(const std::string& directory);

  std::vector<ShardStats> stats();  // [num_shards]

  // ---- async mode: the dense parameters too, divided evenly over the shards. Always fp32.

  /// Flat vectors of the same size, and how often the optimizer has run. `first` and `second` are
  /// its state, in the sense of update_dense; all of it is kept and given back, used or not.
  struct DenseVectors {
    std::vector<float> parameters, first, second;
    double num_updates = 0.0;
  };

  /// One rank, once, between begin and the first exchange of any rank. Blocks until it is there.
  void put_dense(const DenseVectors& values, const DenseOptimizer& optimizer);

  /// Sends a gradient [num_parameters], which the shards apply as it arrives, once, with this
  /// factor and learning rate, and asks for the parameters that result. `step` ascends from one to
  /// the next. Returns at once while fewer than kMaxDenseExchanges are under way.
  void exchange_dense(std::int64_t step,
                      std::span<const float> gradient,
                      float scale,
                      double lr,
                      DenseExchange& exchange);
  static constexpr std::int64_t kMaxDenseExchanges = 8;

  /// Waits for the oldest exchange: until the shards have taken its gradient and sent what the
  /// parameters are then, to `parameters` [num_parameters]. A rank that is further ahead than the
  /// shards waits for them.
  void wait_dense(DenseExchange& exchange, std::span<float> parameters);

  /// What the parameters are now, with the optimizer's state: for a checkpoint, when nobody pushes.
  DenseVectors pull_dense_state(std::int64_t num_parameters);

  std::int64_t max_pulls() const;
  std::int64_t num_reconnects() const;

  /// Ends all waiting: what is under way, and what is asked from now on, throws net::NetError
  /// (kClosed). For a process that goes down while other threads wait for shards. From any thread.
  void stop();

  void close_connections();  // as if they had broken, for tests

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace satrap::ps
