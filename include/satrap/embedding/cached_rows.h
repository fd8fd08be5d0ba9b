#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "satrap/backend/stream_times.h"
#include "satrap/core/thread_pool.h"
#include "satrap/embedding/row_access.h"
#include "satrap/embedding/table_groups.h"
#include "satrap/job/feature_spec.h"
#include "satrap/table/row_store.h"
#include "satrap/table/staleness_bound.h"
#include "satrap/table/table_spec.h"

namespace satrap::embedding {

/// The counts of a cache so far, over all table groups. A row counts once per batch that needs it.
struct CacheCounts {
  std::int64_t hits = 0, misses = 0;
  std::int64_t rows_written = 0;  // to the store
  std::int64_t bytes_fetched = 0, bytes_written = 0;
  std::int64_t bytes = 0;     // of its memory; 0: no batch has been planned
  double save_seconds = 0.0;  // for which training paused, to copy changed rows aside

  /// The share of the needed rows that caches of other sizes would miss, by a sample of the run, if
  /// they evicted the row needed longest ago: looking ahead misses fewer. Sizes ascend.
  struct MissRate {
    std::int64_t cache_bytes = 0;
    double miss_rate = 0.0;  // first uses included
  };
  std::vector<MissRate> miss_curve = {};
  std::int64_t halving_bytes =
      0;  // the size that would halve the misses beyond first uses; 0: none
};

class RowCache;

/// Rows of a store that are cached, and trained, in the memory of a device: one cache per row
/// group, made when the first batch is planned. The cache owns its rows: whatever is in it and has
/// been updated is newer than in the store, and no one else may update the store's rows.
///
/// A plan finds or makes room for the rows of its batch; rows that have to leave go to the store in
/// the background, and missing ones come from there, several batches ahead of their use. Results
/// have the bits of rows trained in their tables, whatever the size of the cache.
class CachedRows final : public RowAccess {
 public:
  struct Options {
    /// For the slots of all groups, which share it in proportion to what the first batch needs of
    /// each, and for looking ahead. Overflow rows, plans and staging are not part of it.
    std::int64_t memory_bytes = 0;
    backend::EvictionPolicy policy = backend::EvictionPolicy::kLfu;
    std::int64_t batch_examples = 0;  // of a full batch; the first one may be smaller
    std::int64_t max_in_flight = 8;   // batches that are planned, looked up or trained on
    // Before an update come all lookups that must not see it: that of step t waits for those of
    // steps up to its last_reader. 0 where nothing makes updates wait for lookups.
    table::StalenessBound update_delay = 0;
    // Batches, whose examples wait in memory; their keys and offsets, too, up to 1 GiB.
    std::int64_t max_look_ahead = 0;
    // From the second batch on, instead of once the cache is full and a batch misses more than a
    // sixteenth of its rows. For ranks, which agree on one number.
    bool looks_ahead_at_once = false;
    std::int64_t num_fetches = 4;  // at a time
    bool reads_in_store = false;   // the device reads missing rows where the store can tell where
    // On which rows are pooled and updated, for a network in the device's memory, which queues its
    // work there too; nullptr: for one in the host's.
    const backend::Stream* stream = nullptr;
    backend::StreamTimes* times = nullptr;  // gets those of lookups and updates, unless null
  };

  /// `tables[i]` has TableId i and no limits. `store` and `uncached` have the same rows; rows are
  /// read for evaluation through `uncached`, after flush(). All outlive it, and options.stream
  /// does.
  CachedRows(const std::vector<job::FeatureSpec>& features,
             const std::vector<table::TableSpec>& tables,
             std::uint64_t seed,
             table::RowStore& store,
             RowAccess& uncached,
             backend::Device& device,
             ThreadPool& pool,
             const Options& options);
  ~CachedRows() override;

  const FeatureLayout& layout() const override;
  const DeviceRows* on_device() const override;
  ThreadPool& pool() const override;
  std::unique_ptr<BatchRows> make_rows() override;
  RowAccess& reader() override;
  std::int64_t look_ahead() const override;
  void look_at(const data::Batch& batch, std::int64_t step) override;
  void stop() override;

  /// The table groups that features read, in the order of TableGroups.
  std::vector<const TableGroup*> groups() const;

  /// Where the rows are, also for a network in the host's memory.
  const DeviceRows& device_rows() const;

  /// For batches of keys (BatchByKey).
  void look_at(std::span<const std::vector<Key>> keys,
               std::int64_t num_examples,
               std::int64_t step);

  /// Whether it looks at batches that are shown to it, before it can say how many.
  bool looks_ahead() const;

  // No update may run during these.

  /// Copies all changed rows aside, and returns; then, when the store has them and nothing newer,
  /// calls `action` on another thread. If that never comes, `action` is destroyed without a call.
  void save(std::function<void()> action);

  /// Blocks until the store has all changed rows.
  void flush();

  // Any thread.
  CacheCounts counts() const;
  void throw_if_failed() const;  // the error of the store that ended the way back of rows

 private:
  class Batch;
  friend class BatchByKey;
  const std::unique_ptr<RowCache> cache_;
};

}  // namespace satrap::embedding
