#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "satrap/net/server.h"
#include "satrap/ps/shard_job.h"
#include "satrap/table/row.h"
#include "satrap/table/table.h"
#include "satrap/table/table_snapshot.h"
#include "src/ps/dense_part.h"
#include "src/ps/divided_keys.h"
#include "src/ps/shard_wire.h"

namespace satrap::ps {

/// A step of a rank, from its pull to the moment its gradients have been applied. `state`, and what
/// belongs to it, is guarded by the rank's mutex; `keys` and `rows` by the order of events: readers
/// of requests write keys before workers get the step, workers write the rows of their own parts.
struct OpenStep {
  enum class State { kFree, kPulling, kPulled, kPushed };
  State state = State::kFree;
  std::int64_t rank = 0, step = 0;

  DividedKeys keys;
  std::vector<table::RowPointer> rows;  // [num_keys]

  // The pull, and its repetition after a reconnect.
  std::unique_ptr<net::ServerCall> pull_call, repeated_call;
  FloatType pull_encoding{};
  std::span<std::byte> reply;
  std::atomic<std::int64_t> read_version = 0;  // smallest over the workers so far
  std::vector<std::byte> kept_answer;          // deterministic: until the push

  // The push. Its values are in the request itself, or copied.
  std::unique_ptr<net::ServerCall> push_call;
  std::vector<std::byte> copied_gradients;
  const std::byte* gradients = nullptr;
  FloatType push_encoding{};
  bool skip = false;

  std::atomic<std::int64_t> parts_left = 0;  // of the pull, then of the push
};

/// Reads or overwrites rows as they are, outside of steps.
struct RowRequest {
  enum class Kind {
    kLookup,  // or a pull that is repeated after it had been answered
    kFetch,   // whole rows
    kPut      // whole rows; has no reply
  };
  Kind kind = Kind::kLookup;
  std::unique_ptr<net::ServerCall> call;
  DividedKeys keys;  // of whole rows: divided by a layout of theirs
  FloatType encoding{};
  std::span<std::byte> reply;
  const std::byte* rows = nullptr;  // of a put, in the request itself
  std::atomic<std::int64_t> read_version = 0;
  std::atomic<std::int64_t> parts_left = 0;
};

/// A pull or a push of dense parameters.
struct DenseRequest {
  std::unique_ptr<net::ServerCall> call;  // a push that has been answered keeps its gradient here
  std::shared_ptr<DensePart> part;
  std::int64_t rank = 0;
  std::span<std::byte> reply;  // of a pull
  bool with_state = false;
  const float* gradient = nullptr;  // of a push
  float scale = 1.0F;
  double lr = 0.0;
  std::atomic<double> num_updates = std::numeric_limits<double>::max();  // least of the workers'
  std::atomic<std::int64_t> parts_left = 0;
};

/// What a shard has of a job from one begin to the next: tables, open steps, who waits for what.
/// Thread-safe.
class RunningJob {
 public:
  struct Limits {
    /// Steps a rank may have open: more than any trainer has under way.
    static std::int64_t open_steps(const ShardJob& job) { return job.staleness + 64; }
    /// Pushes of a rank whose values stay in the memory of the transport until they are applied;
    /// those of more are copied, so that the rank's other requests get through.
    static constexpr std::int64_t kHeldPushes = 4;
    /// Dense gradients of a rank that have been taken and not applied; the next one is taken when
    /// it has been applied.
    static constexpr std::int64_t kDensePushes = 2;
  };

  /// One rank's side.
  struct Rank {
    std::mutex mutex;
    std::int64_t last_pulled = 0, last_pushed = 0;
    std::int64_t end_of_pulls = 0;  // no pull after this step
    std::int64_t held_pushes = 0;
    std::int64_t last_dense_push = 0, dense_pushes_under_way = 0;
    std::map<std::uint64_t, std::uint64_t> last_puts;  // RequestTag::client: highest sequence taken
    std::vector<std::unique_ptr<OpenStep>> open;       // [open_steps], by step modulo its size
    std::vector<std::int64_t> staleness_histogram;
  };

  /// A snapshot, from the request to the last file. Guarded by snapshot_mutex.
  struct Snapshot {
    net::RequestTag begin_tag{}, write_tag{};
    std::int64_t step = 0;
    bool is_taken = false, is_writing = false, is_written = false;
    std::vector<std::unique_ptr<table::TableSnapshot>> tables;
    std::vector<std::unique_ptr<net::ServerCall>> begin_calls, write_calls;
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

  /// Rows of some table come and go by who asks for them when: so pulls are read in the order of
  /// steps, and one that comes again gets the same answer.
  bool has_limits() const;

  Rank& rank_of(const net::RequestTag& tag);  // throws Error(kInvalidData)
  OpenStep& slot_of(Rank& rank, std::int64_t step);

  // ---- the end of a job. While requests are taken in, `gate` is held shared.
  std::shared_mutex gate;
  std::atomic<bool> is_abandoned = false;  // another begin has come

  /// Everything that waits and everything that comes gets this message. The first one counts.
  void fail(const std::string& message);
  bool has_failed() const { return has_failed_; }
  std::string failure();
  void throw_if_failed();

  // ---- what workers report: the last one of all answers.
  void finish_part_of_pull(OpenStep& step, std::int64_t read_version);
  void finish_part_of_push(OpenStep& step);
  void finish_part_of_request(RowRequest& request, std::int64_t read_version);
  void finish_part_of_dense(DenseRequest& request, double num_updates);
  void note_applied(std::int64_t worker, std::int64_t step);

  // ---- dense parameters of an async job: put once, guarded by dense_mutex
  std::mutex dense_mutex;
  std::shared_ptr<DensePart> dense;
  net::RequestTag dense_tag{};  // of the put

  // ---- progress
  std::int64_t applied() const;
  void wait_applied(std::int64_t step, std::unique_ptr<net::ServerCall>& call);
  ShardStats stats();
  std::atomic<std::int64_t> num_repeated = 0;

  // ---- snapshots
  std::mutex snapshot_mutex;
  std::unique_ptr<Snapshot> snapshot;
  std::atomic<std::int64_t> highest_mark = 0;   // last_step of any row
  std::atomic<std::int64_t> snapshot_mark = 0;  // of the last snapshot: what it has is up to this

 private:
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
  std::mutex mutex_;
  std::vector<Waiter> waiters_;
  std::string failure_;
};

/// Sends an answer that was made for one call to another one of the same request.
void answer_with_copy(net::ServerCall& call, std::span<const std::byte> answer);

}  // namespace satrap::ps
