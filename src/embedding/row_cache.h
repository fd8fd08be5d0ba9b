#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "satrap/backend/device.h"
#include "satrap/backend/stream.h"
#include "satrap/core/mutex.h"
#include "satrap/core/thread_pool.h"
#include "satrap/data/batch.h"
#include "satrap/embedding/cached_rows.h"
#include "satrap/embedding/feature_layout.h"
#include "satrap/embedding/table_groups.h"
#include "satrap/job/feature_spec.h"
#include "satrap/table/table_spec.h"
#include "src/embedding/completed_steps.h"
#include "src/embedding/device_columns.h"
#include "src/embedding/group_cache.h"
#include "src/embedding/kept_batches.h"
#include "src/embedding/miss_curve.h"
#include "src/embedding/plan_room.h"
#include "src/embedding/row_fetcher.h"
#include "src/embedding/write_back.h"

namespace satrap::embedding {

/// The caches of all table groups that features read, made when the first batch is there, and the
/// rows on their way between them and the store: what CachedRows and its batches (Batch,
/// BatchByKey) share.
///
/// The planner's thread makes the caches, looks ahead, waits for room and resolves; another one,
/// the owner of the rows, pools and updates; a third one may save while no update runs.
class RowCache {
 public:
  using Parts = std::vector<std::unique_ptr<GroupPart>>;

  RowCache(const std::vector<job::FeatureSpec>& features,
           const std::vector<table::TableSpec>& tables,
           std::uint64_t seed,
           table::RowStore& store,
           RowAccess& uncached_rows,
           backend::Device& the_device,
           ThreadPool& threads,
           const CachedRows::Options& given);

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
    return options.policy == backend::EvictionPolicy::kLookahead && options.max_look_ahead > 0;
  }
  std::int64_t look_ahead() const { return is_worth_looking_ ? look_ahead_ : 0; }  // batches
  void look_at(const data::Batch& batch, std::int64_t step);
  void look_at(std::span<const std::vector<Key>> keys,
               std::int64_t num_examples,
               std::int64_t step);

  /// Planner thread: gives the rows of a batch their slots, and lists those that are missing. Rows
  /// that make room go to the store. Blocks while there is no room; throws Error(kInvalidConfig) if
  /// there will be none, Error(kUnavailable) once stopped.
  void resolve(const Parts& parts, std::int64_t step);

  void note_applied(std::int64_t step) { completed.add(step, compute); }
  void note_changed() { has_changed_ = true; }
  void stop();
  void save_changed();
  void flush();  // and waits until the store has them
  void count_fetched(std::span<const Key> keys);
  void sample(const Parts& parts, std::int64_t step);
  CacheCounts counts() const;

  /// Has `queue` queue the pooling of a batch, to memory of the device, and writes the mask. Blocks
  /// if `pooled` is in the host's memory, until it is there.
  void pool_to(const data::Batch& batch,
               const FloatMatrix& pooled,
               const FloatMatrix& mask,
               const std::function<void(float*)>& queue);

  /// Pooled rows or their gradient, of so many examples, must be in the device's memory.
  void check_on_device(const ConstFloatMatrix& matrix, std::int64_t num_examples) const;

  const CachedRows::Options options;
  const TableGroups groups;
  const std::size_t num_tables;
  const FeatureLayout on_host, on_device;
  backend::Device& device;
  ThreadPool& pool;
  RowAccess& uncached;
  const backend::Stream planning;   // of the planner
  const backend::Stream evictions;  // of the planner: copies of rows that make room
  const backend::Stream copies;     // of fetches

  // One per group with features, in the order of groups; made once.
  std::vector<std::unique_ptr<GroupCache>> caches;

  const std::optional<backend::Stream> own_compute;  // without options.stream
  const backend::Stream& compute;                    // of the thread that pools
  const DeviceRows device_rows;                      // on `compute`
  CompletedSteps completed;                          // those whose rows may leave

  // Used for one batch at a time, by pool() and update().
  DeviceColumns columns;

  // Used by the planner's thread, for batches by key.
  std::vector<PlanRoom> rooms_by_key;  // [num_groups]

  // Their threads, which use only what stands above, end before that goes.
  WriteBack write_back;
  RowFetcher fetcher;

 private:
  void fill(const Parts& parts, const data::Batch& batch) const;
  void prepare_look();
  void touch(std::int64_t step);
  void upload(const Parts& parts, std::int64_t num_examples, std::int64_t step);
  void make_caches(const Parts& parts, std::int64_t num_examples, std::int64_t step);
  std::int64_t expected_keys(const GroupPart& part, std::int64_t num_examples) const;
  void wait_for_room(std::int64_t step, std::int64_t newest, const GroupCache& cache);
  GroupCache::Numbers numbers(std::int64_t step, std::int64_t newest) const;

  static constexpr std::int64_t kMaxKeptBytes = std::int64_t{1} << 30;
  static constexpr std::int64_t kMaxWaitingBytes = std::int64_t{256} << 20;  // to the store

  // Used by the planner's thread.
  Parts looked_at_;              // the batch that is looked at
  KeptBatches kept_;             // batches looked at, until they are planned
  std::int64_t look_ahead_ = 0;  // batches
  bool is_worth_looking_ = false;
  std::int64_t steps_before_ = 0;  // the first batch's step - 1

  std::atomic<bool> has_changed_{false};
  std::atomic<std::int64_t> bytes_fetched_{0};
  mutable Mutex
      mutex_;  // guards the caches' bookkeeping where other threads than the planner use it
  mutable Mutex sample_mutex_;
  MissCurve curve_ SATRAP_GUARDED_BY(sample_mutex_);
  double save_seconds_ SATRAP_GUARDED_BY(sample_mutex_) = 0.0;
};

}  // namespace satrap::embedding
