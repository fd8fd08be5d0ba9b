#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "satrap/core/mutex.h"
#include "satrap/net/server.h"
#include "satrap/ps/shard_job.h"
#include "satrap/table/row.h"
#include "satrap/table/table.h"
#include "satrap/table/table_snapshot.h"
#include "src/ps/dense_part.h"
#include "src/ps/divided_keys.h"
#include "src/ps/shard_wire.h"

namespace satrap::ps {

/// A step of a rank, from its pull until its gradients have been applied. The rank's mutex guards
/// `state` and its data; the order of events guards `keys` and `rows`: readers of requests write
/// keys before workers get the step, workers write the rows of their own parts.
struct OpenStep {
  enum class State { kFree, kPulling, kPulled, kPushed };
  State state = State::kFree;
  std::int64_t rank = 0, step = 0;

  DividedKeys keys;
  std::vector<table::RowPointer> rows;  // [num_keys]

  // The pull, and its repeat after a reconnect.
  std::unique_ptr<net::ServerCall> pull_call, repeated_call;
  FloatType pull_encoding{};
  std::int64_t least_version = 0;
  std::span<std::byte> reply;
  std::atomic<std::int64_t> read_version = 0;  // smallest over the workers so far
  std::vector<std::byte> kept_answer;          // until the push, see keeps_answers()

  // The push. Its values are in the request, or copied.
  std::unique_ptr<net::ServerCall> push_call;
  std::vector<std::byte> copied_gradients;
  const std::byte* gradients = nullptr;
  FloatType push_encoding{};
  bool skip = false;

  std::atomic<std::int64_t> parts_left = 0;  // of the pull, then of the push
};

/// Reads or overwrites the current rows, outside steps.
struct RowRequest {
  enum class Kind {
    kLookup,  // or a pull that is repeated after its answer
    kFetch,   // whole rows
    kPut      // whole rows; has no reply
  };
  Kind kind = Kind::kLookup;
  std::unique_ptr<net::ServerCall> call;
  DividedKeys keys;  // whole rows have a separate layout
  FloatType encoding{};
  std::span<std::byte> reply;
  const std::byte* rows = nullptr;  // of a put, in the request itself
  std::atomic<std::int64_t> read_version = 0;
  std::atomic<std::int64_t> parts_left = 0;
};

/// A pull or a push of dense parameters.
struct DenseRequest {
  std::unique_ptr<net::ServerCall> call;  // an answered push keeps its gradient here
  std::shared_ptr<DensePart> part;
  std::int64_t rank = 0;
  std::span<std::byte> reply;  // of a pull
  bool with_state = false;
  const float* gradient = nullptr;  // of a push
  float scale = 1.0F;
  double lr = 0.0;
  std::atomic<double> num_updates =
      std::numeric_limits<double>::max();  // smallest over the workers
  std::atomic<std::int64_t> parts_left = 0;
};

/// The state of a job on a shard from one begin to the next: tables, open steps, waiting requests.
/// Thread-safe.
class RunningJob {
 public:
  struct Limits {
    /// Steps a rank may have open: more than any trainer has in flight.
    static std::int64_t open_steps(const ShardJob& job) { return job.staleness.max() + 64; }
    /// Pushes of a rank whose values stay in the transport's memory until they are applied. Values
    /// of further pushes are copied, so that they do not block the rank's other requests.
    static constexpr std::int64_t kHeldPushes = 4;
    /// Dense gradients of a rank that may be accepted and not yet applied; the next one is accepted
    /// once one of them has been applied.
    static constexpr std::int64_t kDensePushes = 2;
  };

  /// One rank's side.
  struct Rank {
    Mutex mutex;
    std::int64_t last_pulled SATRAP_GUARDED_BY(mutex) = 0;
    std::int64_t last_pushed SATRAP_GUARDED_BY(mutex) = 0;
    std::int64_t end_of_pulls SATRAP_GUARDED_BY(mutex) = 0;   // no pull after this step
    std::int64_t least_version SATRAP_GUARDED_BY(mutex) = 0;  // wanted by a pull so far
    std::int64_t held_pushes SATRAP_GUARDED_BY(mutex) = 0;
    std::int64_t last_dense_push SATRAP_GUARDED_BY(mutex) = 0;
    std::int64_t dense_pushes_under_way SATRAP_GUARDED_BY(mutex) = 0;
    // RequestTag::client: highest sequence accepted
    std::map<std::uint64_t, std::uint64_t> last_puts SATRAP_GUARDED_BY(mutex);
    // [open_steps], by step modulo its size
    std::vector<std::unique_ptr<OpenStep>> open SATRAP_GUARDED_BY(mutex);
    std::vector<std::int64_t> staleness_histogram SATRAP_GUARDED_BY(mutex);
    // Memory for answers that are kept.
    std::vector<std::vector<std::byte>> spare_answers SATRAP_GUARDED_BY(mutex);
  };

  /// A snapshot, from the request to the last file. Guarded by snapshot_mutex.
  struct Snapshot {
    net::RequestTag begin_tag{}, write_tag{};
    std::int64_t step = 0;
    bool is_taken = false, is_writing = false, is_written = false;
    std::vector<std::unique_ptr<table::TableSnapshot>> tables;
    std::vector<std::unique_ptr<net::ServerCall>> begin_calls, write_calls;
    /// They begin the next one, after the last file of this one.
    std::vector<std::unique_ptr<net::ServerCall>> next_calls;
    std::string files;  // JSON
    std::string error;
  };

  /// `on_failure` is called once, when the job fails, from any thread.
  RunningJob(ShardJob config,
             const std::vector<table::TableSpec>& specs,
             std::uint64_t seed,
             ShardLayout layout,
             bool enforce_bound,
             std::function<void()> on_failure);

  const ShardJob config;
  const ShardLayout layout;
  const bool enforce_bound;
  std::vector<std::unique_ptr<table::Table>> tables;

  /// Whether some table has limits: creation and eviction then depend on the order of pulls, so
  /// pulls are read in the order of steps, and a repeated pull gets the same answer.
  bool has_limits() const;

  /// Whether a repeated pull gets the bytes of the first answer, and not the rows as they are then.
  bool keeps_answers() const { return config.deterministic || has_limits(); }

  /// Once the push of a step has come, its pull is not repeated.
  void release_answer(Rank& rank, OpenStep& step) SATRAP_REQUIRES(rank.mutex);

  Rank& rank_of(const net::RequestTag& tag);  // throws Error(kInvalidData)
  OpenStep& open_step(Rank& rank, std::int64_t step) SATRAP_REQUIRES(rank.mutex);

  // ---- the end of a job. `gate` is held shared while requests are accepted.
  SharedMutex gate;
  std::atomic<bool> is_abandoned = false;  // another begin has arrived

  /// All waiting and later requests get this message. The first call counts.
  void fail(const std::string& message);
  bool has_failed() const { return has_failed_; }
  std::string failure();
  void throw_if_failed();

  // ---- workers' reports: the last worker to report answers.
  void finish_part_of_pull(OpenStep& step, std::int64_t read_version);
  void finish_part_of_push(OpenStep& step);
  void finish_part_of_request(RowRequest& request, std::int64_t read_version);
  void finish_part_of_dense(DenseRequest& request, double num_updates);
  void note_applied(std::int64_t worker, std::int64_t step);

  // ---- dense parameters of an async job: put once
  Mutex dense_mutex;
  std::shared_ptr<DensePart> dense SATRAP_GUARDED_BY(dense_mutex);
  net::RequestTag dense_tag SATRAP_GUARDED_BY(dense_mutex){};  // of the put

  // ---- progress
  std::int64_t applied() const;
  void wait_applied(std::int64_t step, std::unique_ptr<net::ServerCall>& call);
  ShardStats stats();
  std::atomic<std::int64_t> num_repeated = 0;

  // ---- snapshots
  Mutex snapshot_mutex;
  std::unique_ptr<Snapshot> snapshot SATRAP_GUARDED_BY(snapshot_mutex);
  std::atomic<std::int64_t> highest_mark = 0;   // last_step of any row
  std::atomic<std::int64_t> snapshot_mark = 0;  // of the last snapshot: it has rows up to this

 private:
  void keep_answer(Rank& rank, OpenStep& step, std::span<const std::byte> reply);
  struct Waiter {
    std::int64_t step;
    std::unique_ptr<net::ServerCall> call;
  };
  void answer_waiters();

  const std::function<void()> on_failure_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<std::atomic<std::int64_t>> applied_;  // [num_workers]
  std::atomic<std::int64_t> num_waiters_ = 0;
  std::atomic<bool> has_failed_ = false;
  Mutex mutex_;
  std::vector<Waiter> waiters_ SATRAP_GUARDED_BY(mutex_);
  std::string failure_ SATRAP_GUARDED_BY(mutex_);
};

/// Sends the answer to one call also to another call of the same request.
void answer_with_copy(net::ServerCall& call, std::span<const std::byte> answer);

}  // namespace satrap::ps
