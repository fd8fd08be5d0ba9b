#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "satrap/core/ids.h"

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
  /// valid until the next pull or lookup with this object.
  std::span<const float* const> weights() const;  // [num_keys]

  /// Filled by prepare_push(): where the caller writes the gradient of the u-th key, [dim] floats.
  std::span<float* const> gradients() const;  // [num_keys]

  /// Set by wait() after a pull: v of the E_v that was read, the smallest over the shards.
  std::int64_t read_version() const;

  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

/// A rank's steps on the shards: the weights that it reads, and the gradients that it sends. Each
/// rank sends one pull and one push for every step from the job's first on, in order.
///
/// Thread rules: pull(), wait() and lookup() from one thread each; prepare_push() and push() from
/// one other thread, wait_pushed() from one; the rest from any. pull() and push() use separate
/// connections, so that pulls that wait because of the bound never delay a push.
class StepClient {
 public:
  virtual ~StepClient() = default;

  /// Requests the rows of `keys`, ascending and unique; missing ones are created. `keys` may be
  /// empty (the step still counts). Returns at once; wait() waits. At most max_pulls() may be in
  /// flight. `least_version`: no answer from older rows than E_v of this v, even where the bound
  /// allows them; below `step`. deterministic and async jobs do not look at it.
  virtual void pull(std::int64_t step,
                    std::span<const Key> keys,
                    StepRows& rows,
                    std::int64_t least_version = 0) = 0;
  virtual std::int64_t max_pulls() const = 0;

  /// Waits for the answers of the oldest pull, which must be of `rows`.
  virtual void wait(StepRows& rows) = 0;

  /// Lays out the memory for the gradients of the keys pulled with `rows`.
  virtual void prepare_push(StepRows& rows) = 0;

  /// Sends the gradients of `step`, which the shards apply when it is their turn. `skip`: there are
  /// none (the step was not finite); the memory is not sent. Returns at once, unless too many
  /// pushes are in flight.
  virtual void push(std::int64_t step, StepRows& rows, bool skip) = 0;

  /// Waits until every shard has accepted the oldest push, which must be of `rows`. Some thread
  /// must wait while pushes are in flight: it notices a broken connection.
  virtual void wait_pushed(StepRows& rows) = 0;

  /// This rank will pull no step after `step`: deterministic updates need not wait for its pulls.
  virtual void end_pulls(std::int64_t step) = 0;

  /// Blocks until all shards have applied all updates up to `step`.
  virtual void wait_applied(std::int64_t step) = 0;

  /// Whether they have. Blocks for their answers.
  virtual bool is_applied(std::int64_t step) = 0;

  /// As pull and wait, outside of steps: the rows as they are now; missing ones are not created but
  /// read as they would be created.
  virtual void lookup(std::span<const Key> keys, StepRows& rows) = 0;

  /// Ends all waiting: pending and later calls of the whole client throw net::NetError (kClosed).
  /// For a process that ends while other threads wait for shards.
  virtual void stop() = 0;
};

}  // namespace satrap::ps
