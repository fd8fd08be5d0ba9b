#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "satrap/backend/stream.h"
#include "satrap/embedding/cached_rows.h"
#include "satrap/embedding/row_groups.h"
#include "src/embedding/device_array.h"
#include "src/embedding/group_cache.h"
#include "src/embedding/miss_curve.h"
#include "src/embedding/row_fetcher.h"
#include "src/embedding/write_back.h"

namespace satrap::embedding {

/// The caches of all row groups of a job, and the rows on their way between them and the store:
/// what the batches (CachedBatch) share.
///
/// The planner's thread makes the caches and resolves; another one, the owner of the rows, pools
/// and updates; a third one may save while no update runs.
class RowCache {
 public:
  RowCache(const std::vector<job::FeatureSpec>& features,
           const std::vector<table::TableSpec>& tables,
           std::uint64_t seed,
           table::RowStore& store,
           RowAccess& uncached_rows,
           backend::Device& the_device,
           ThreadPool& threads,
           const CachedRows::Options& the_options)
      : groups(features, tables, seed),
        on_host(features, tables),
        on_device(features, tables, FeatureLayout::kDeviceColumns),
        has_same_columns(on_host.output_width == on_device.output_width),
        uncached(uncached_rows),
        device(the_device),
        pool(threads),
        options(the_options),
        planning(the_device),
        copies(the_device),
        compute(the_device),
        steps_(the_device),
        num_tables_(tables.size()),
        write_back(store, kMaxWaitingBytes),
        fetcher(store, the_options.num_fetches) {}

  std::vector<std::unique_ptr<GroupPart>> make_parts() const;  // of the groups that features read

  /// Planner thread: puts a batch into parts, and queues its way to the device. The first one
  /// decides the size of the caches.
  void fill(const std::vector<std::unique_ptr<GroupPart>>& parts,
            const data::Batch& batch,
            std::int64_t step);

  /// The same for the keys of each part, which a batch of so many examples needs.
  void fill(const std::vector<std::unique_ptr<GroupPart>>& parts,
            std::span<const std::vector<Key>> keys,
            std::int64_t num_examples,
            std::int64_t step);

  /// Planner thread: looks at a batch that is planned later, so that its rows are kept.
  std::int64_t look_ahead() const { return look_ahead_; }
  void look_at(const data::Batch& batch, std::int64_t step);

  /// Planner thread: gives the rows of a batch their slots and asks for those that are missing.
  void resolve(std::vector<std::unique_ptr<GroupPart>>& parts, std::int64_t step);

  /// `gradients`: of the output of each part.
  void update(const std::vector<std::unique_ptr<GroupPart>>& parts,
              std::span<const float* const> gradients,
              std::int64_t step);
  void note_applied(std::int64_t step);
  void stop();
  void save_changed();
  void flush();  // and waits until the store has them
  void count_fetched(std::span<const Key> keys);
  void sample(const std::vector<std::unique_ptr<GroupPart>>& parts, std::int64_t step);
  CacheCounts counts() const;

  const RowGroups groups;
  const FeatureLayout on_host, on_device;
  const bool has_same_columns;  // both layouts
  RowAccess& uncached;
  backend::Device& device;
  ThreadPool& pool;
  const CachedRows::Options options;
  const backend::Stream planning, copies, compute;  // of the planner, of fetches, of the owner

  // One per group with features, in the order of groups; made once.
  std::vector<std::unique_ptr<GroupCache>> caches;
  std::vector<float> columns;  // of the device's layout, of one batch: of pool() and update()

 private:
  static constexpr std::int64_t kMaxWaitingBytes = std::int64_t{256} << 20;  // to the store

  bool looks_ahead() const {
    return options.policy == backend::EvictionPolicy::kLookahead && options.max_look_ahead > 0;
  }
  std::int64_t expected_keys(const GroupPart& part, std::int64_t num_examples) const;
  void upload(const std::vector<std::unique_ptr<GroupPart>>& parts,
              std::int64_t num_examples,
              std::int64_t step);
  void make_caches(const std::vector<std::unique_ptr<GroupPart>>& parts,
                   std::int64_t num_examples,
                   std::int64_t step);
  GroupCache::Numbers numbers(std::int64_t step, std::int64_t applied) const;
  void wait_for_progress(std::int64_t step, std::int64_t applied, const GroupCache& cache);

  std::vector<std::unique_ptr<GroupPart>> looked_at_;  // the batch that is looked at
  std::int64_t look_ahead_ = 0;                        // batches
  std::vector<TableStep> table_steps_;
  DeviceArray<TableStep> steps_;
  const std::size_t num_tables_;
  std::int64_t steps_before_ = 0;  // the first batch's step - 1
  mutable std::mutex mutex_;       // guards caches' bookkeeping
  std::mutex progress_mutex_;
  std::condition_variable progress_;
  std::atomic<std::int64_t> applied_{0};  // the last step whose updates are in the rows
  std::atomic<bool> is_stopped_{false}, has_changed_{false};
  std::atomic<std::int64_t> bytes_fetched_{0};
  mutable std::mutex sample_mutex_;  // guards the two below
  MissCurve curve_;
  double save_seconds_ = 0.0;

 public:
  // Their threads end first.
  WriteBack write_back;
  RowFetcher fetcher;
};

}  // namespace satrap::embedding
