#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "satrap/backend/stream_times.h"
#include "satrap/core/thread_pool.h"
#include "satrap/embedding/row_access.h"
#include "satrap/embedding/row_groups.h"
#include "satrap/job/feature_spec.h"
#include "satrap/table/row_store.h"
#include "satrap/table/staleness_bound.h"
#include "satrap/table/table_spec.h"

namespace satrap::embedding {

/// What a cache has done so far, over all row groups. A row counts once per batch that needs it.
struct CacheCounts {
  std::int64_t hits = 0, misses = 0;
  std::int64_t rows_written = 0;  // to the store
  std::int64_t bytes_fetched = 0, bytes_written = 0;
  std::int64_t bytes = 0;     // of its memory; 0: no batch has been planned
  double save_seconds = 0.0;  // for which training paused, to copy changed rows aside

  /// What share of the needed rows caches of other sizes would miss, by a sample of the run, if
  /// they evicted the row needed longest ago: looking ahead misses fewer. Sizes ascend.
  struct MissRate {
    std::int64_t cache_bytes = 0;
    double miss_rate = 0.0;  // first uses included
  };
  std::vector<MissRate> miss_curve = {};
  std::int64_t halving_bytes =
      0;  // the size that would halve the misses beyond first uses; 0: none
};

/// The rows that a step needs of a cache, by their keys: for ranks that pool the rows, and sum
/// their gradients over a batch, themselves. In threads and in the order of calls as BatchRows,
/// whose request() includes the plan. Reused from step to step.
class RowsByKey {
 public:
  virtual ~RowsByKey() = default;
  RowsByKey(const RowsByKey&) = delete;
  RowsByKey& operator=(const RowsByKey&) = delete;

  /// `keys[g]`: those of the g-th of CachedRows::groups(), in any order; a key may occur several
  /// times. `num_examples`: of the batch that needs them.
  virtual void request(std::int64_t step,
                       std::span<const std::vector<Key>> keys,
                       std::int64_t num_examples) = 0;

  /// Blocks until what was queued for the last step that it was used for is done.
  virtual void begin() = 0;

  /// Blocks until the rows have arrived.
  virtual void wait() = 0;

  /// Copies the weights of the rows of keys[g] to weights[g], [n, padded_dim], 16-byte aligned.
  virtual void gather(std::span<float* const> weights) const = 0;

  /// Applies a gradient for each of keys[g], [n, padded_dim] whose padding is zero: those of equal
  /// keys are added first, in the order of keys[g] (kernels/sum_order.h).
  virtual void update(std::span<const float* const> gradients, std::int64_t step) = 0;
  virtual void skip(std::int64_t step) = 0;  // instead of update

  /// The same with memory of the device, queued on the stream of CachedRows::Options: nothing is
  /// updated if *flag is not 0.
  virtual void queue_gather(std::span<float* const> weights) const = 0;
  virtual void queue_update(std::span<const float* const> gradients,
                            std::int64_t step,
                            const float* flag) = 0;

 protected:
  RowsByKey() = default;
};

/// A batch on a device whose rows other ranks have: the weights of its distinct keys come as
/// vectors, and a gradient for each leaves it. The counterpart of RowsByKey, in threads and in the
/// order of calls as BatchRows. Reused once what was queued for it is done.
class BatchByKey {
 public:
  virtual ~BatchByKey() = default;
  BatchByKey(const BatchByKey&) = delete;
  BatchByKey& operator=(const BatchByKey&) = delete;

  /// Lists the distinct keys of the batch. Blocks until the device has done it.
  virtual void make_plan(const data::Batch& batch) = 0;
  virtual std::span<const std::vector<Key>> keys() const = 0;  // [num_groups], in any order

  /// Key u of keys()[g] has vector places[g][u] of its group, each another one. Blocks until the
  /// device has the places.
  virtual void set_places(std::span<const std::vector<std::int32_t>> places) = 0;

  /// Queues the pooling of the vectors weights[g], [n, padded_dim] in the device's memory. Outputs:
  /// as those of BatchRows::pool, `pooled` in the device's memory.
  virtual void pool(const data::Batch& batch,
                    std::span<const float* const> weights,
                    const FloatMatrix& pooled,
                    const FloatMatrix& mask) const = 0;

  /// Queues the sums of the gradients of each key, in the order of kernels/sum_order.h, into
  /// gradients[g], vectors of the same places.
  virtual void sum_gradients(const ConstFloatMatrix& grad_pooled,
                             std::span<float* const> gradients) const = 0;

 protected:
  BatchByKey() = default;
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
    /// Of the slots of all groups, which share it in proportion to what the first batch needs of
    /// each, and of what looking ahead takes. Overflow rows, plans and staging are not part of it.
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
  /// read for evaluation through `uncached`. All outlive it, and options.stream does.
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
  std::int64_t look_ahead() const override;
  void look_at(const data::Batch& batch, std::int64_t step) override;
  void stop() override;

  /// The row groups that features read, in the order of RowGroups.
  std::vector<const RowGroup*> groups() const;

  /// As make_rows() and look_at(), for batches of keys. All batches of a cache are of one kind.
  std::unique_ptr<RowsByKey> make_rows_by_key();

  /// For batches whose rows this cache and those of other ranks have together.
  std::unique_ptr<BatchByKey> make_batch_by_key();
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
  const std::unique_ptr<RowCache> cache_;
};

}  // namespace satrap::embedding
