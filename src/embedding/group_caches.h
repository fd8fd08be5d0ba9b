#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "satrap/backend/device.h"
#include "satrap/backend/stream.h"
#include "satrap/core/thread_pool.h"
#include "satrap/data/batch.h"
#include "satrap/embedding/cached_rows.h"
#include "satrap/embedding/feature_layout.h"
#include "satrap/embedding/row_groups.h"
#include "satrap/job/feature_spec.h"
#include "satrap/table/staleness_bound.h"
#include "satrap/table/table_spec.h"
#include "src/embedding/group_cache.h"
#include "src/embedding/kept_batches.h"
#include "src/embedding/queued_steps.h"
#include "src/embedding/write_back.h"

namespace satrap::embedding {

/// The caches of all row groups that features read, made when the first batch is there, and the
/// wait for room in them: what a cache of rows and a cache of copies have in common.
///
/// The planner's thread makes the caches, looks ahead and resolves. A step is completed when its
/// rows may leave; any thread says so.
class GroupCaches {
 public:
  struct Options {
    std::int64_t memory_bytes = 0;
    backend::EvictionPolicy policy = backend::EvictionPolicy::kLfu;
    std::int64_t batch_examples = 0;
    std::int64_t max_in_flight = 8;
    std::int64_t max_look_ahead = 0;
    bool looks_ahead_at_once = false;
    // Without the rows of step t, the steps up to its oldest_version will be completed.
    table::StalenessBound delay = 0;
    const backend::Stream* stream = nullptr;  // of pooling; nullptr: one of its own
  };
  using Parts = std::vector<std::unique_ptr<GroupPart>>;

  GroupCaches(const std::vector<job::FeatureSpec>& features,
              const std::vector<table::TableSpec>& tables,
              std::uint64_t seed,
              backend::Device& the_device,
              ThreadPool& threads,
              const Options& options);

  Parts make_parts() const;  // of the groups that features read

  /// Planner thread: puts a batch into parts, and queues its way to the device. The first one
  /// decides the size of the caches.
  void fill(const Parts& parts, const data::Batch& batch, std::int64_t step);

  /// The same for the keys of each part, which a batch of so many examples needs.
  void fill(const Parts& parts,
            std::span<const std::vector<Key>> keys,
            std::int64_t num_examples,
            std::int64_t step);

  /// Planner thread: looks at a batch that is planned later, or at its keys, so that its rows are
  /// kept. Does nothing with a policy that does not look ahead.
  bool looks_ahead() const {
    return options_.policy == backend::EvictionPolicy::kLookahead && options_.max_look_ahead > 0;
  }
  std::int64_t look_ahead() const { return is_worth_looking_ ? look_ahead_ : 0; }  // batches
  void look_at(const data::Batch& batch, std::int64_t step);
  void look_at(std::span<const std::vector<Key>> keys,
               std::int64_t num_examples,
               std::int64_t step);

  /// Planner thread: gives the rows of a batch their slots. Rows that make room go to `write_back`;
  /// without it they are copies, which are forgotten. Blocks while there is no room; throws
  /// Error(kInvalidConfig) if there will be none, Error(kUnavailable) once stopped.
  void resolve(const Parts& parts, std::int64_t step, WriteBack* write_back);

  /// The steps up to this one are completed, now or once what has been queued on `compute` is done.
  /// Earlier ones than before change nothing.
  void note_completed(std::int64_t step);
  void note_queued(std::int64_t step);
  std::int64_t completed();

  /// Blocks until a step that has been noted is completed.
  void wait_completed(std::int64_t step);
  void stop_waiting();

  /// Numbers of a batch in the caches.
  GroupCache::Numbers numbers(std::int64_t step, std::int64_t completed) const;
  std::int64_t steps_before() const { return steps_before_; }  // the first batch's step - 1

  /// Guards the caches' bookkeeping where other threads than the planner use it.
  std::mutex& mutex() const { return mutex_; }
  std::int64_t bytes() const;

  const RowGroups groups;
  const FeatureLayout on_host, on_device;
  backend::Device& device;
  ThreadPool& pool;
  const backend::Stream planning;   // of the planner
  const backend::Stream evictions;  // of the planner: copies of rows that make room

  // One per group with features, in the order of groups; made once.
  std::vector<std::unique_ptr<GroupCache>> caches;

 private:
  void fill(const Parts& parts, const data::Batch& batch) const;
  void prepare_look();
  void touch(std::int64_t step);
  void upload(const Parts& parts, std::int64_t num_examples, std::int64_t step);
  void make_caches(const Parts& parts, std::int64_t num_examples, std::int64_t step);
  std::int64_t expected_keys(const GroupPart& part, std::int64_t num_examples) const;
  void wait_for_room(std::int64_t step, std::int64_t completed, const GroupCache& cache);
  void wait_for_progress(std::int64_t completed);

  const std::optional<backend::Stream> own_compute_;

 public:
  const backend::Stream& compute;  // of the thread that pools

 private:
  const Options options_;
  QueuedSteps queued_;
  Parts looked_at_;              // the batch that is looked at
  KeptBatches kept_;             // batches looked at, until they are planned
  std::int64_t look_ahead_ = 0;  // batches
  bool is_worth_looking_ = false;
  std::int64_t steps_before_ = 0;
  mutable std::mutex mutex_;
  std::mutex progress_mutex_;  // guards the two below; completed_ is read without it, too
  std::condition_variable progress_;
  bool is_stopped_ = false;
  std::atomic<std::int64_t> completed_{0};
};

}  // namespace satrap::embedding
