#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "satrap/backend/device.h"
#include "satrap/core/float_matrix.h"
#include "satrap/core/thread_pool.h"
#include "satrap/data/batch.h"
#include "satrap/embedding/cached_rows.h"
#include "satrap/embedding/feature_layout.h"
#include "satrap/job/feature_spec.h"
#include "satrap/table/staleness_bound.h"
#include "satrap/table/table_spec.h"

namespace satrap::embedding {

/// The copies that one batch reads. Its functions are called in the order in which they stand; on
/// which thread each runs says SharedCache.
class SharedBatch {
 public:
  virtual ~SharedBatch() = default;

  // ---- planner thread

  /// Finds which rows the batch needs. The batch may be empty.
  virtual void make_plan(const data::Batch& batch, std::int64_t step) = 0;

  /// Gives each row a slot. Blocks while rows of earlier batches, which are not pooled yet, fill
  /// the cache; throws Error(kInvalidConfig) if there are none left to wait for.
  virtual void resolve() = 0;

  /// The rows, ascending, and the version of each copy: v of its E_v, or one of the two below.
  virtual std::span<const Key> keys() const = 0;               // [num_keys]
  virtual std::span<const std::int64_t> versions() const = 0;  // [num_keys]
  static constexpr std::int64_t kOnItsWay = -1;                // an earlier batch has asked for it
  static constexpr std::int64_t kNoCopy = -2;

  // ---- the thread that pools, in the order of steps

  /// Puts the rows that have come into their slots. Only now: until then earlier steps read the
  /// copies before. Returns the smallest version; throws Error(kInternal) if a copy is older than
  /// the bound of the step allows.
  virtual std::int64_t take(
      std::span<const float* const> weights,        // [num_keys]; nullptr: none has come
      std::span<const std::int64_t> versions) = 0;  // [num_keys]; below 0: as it was

  /// As BatchRows::pool. From now on the copies may make room for others.
  virtual void pool(const data::Batch& batch,
                    const FloatMatrix& pooled,
                    const FloatMatrix& mask) const = 0;

  // ---- the thread that updates

  /// Sums the gradient of each key over its occurrences (order: kernels/sum_order.h).
  virtual void sum_gradients(const float* grad_pooled,  // [num_examples, output_width]
                             std::span<float* const> gradients) = 0;  // [num_keys], [dim] each, out

  virtual std::int64_t num_examples() const = 0;
};

/// Copies of rows, in the memory of a device, of which the rows themselves live and are trained
/// elsewhere: one cache per dim, made when the first batch is planned. A copy is of some E_v; the
/// bound of a step says whether it may read it. Copies are never changed here, so that what leaves
/// the cache is forgotten.
///
/// Three threads may use it at the same time: the planner, one that pools, and one that updates.
class SharedCache {
 public:
  struct Options {
    std::int64_t memory_bytes = 0;  // as CachedRows::Options
    backend::EvictionPolicy policy = backend::EvictionPolicy::kLfu;
    std::int64_t batch_examples = 0;
    std::int64_t max_in_flight = 8;  // batches that are planned and not pooled
    std::int64_t max_look_ahead = 0;
    bool looks_ahead_at_once = false;
    table::StalenessBound staleness = 0;
  };

  /// `tables[i]` has TableId i. All outlive it but `features` and `tables`.
  SharedCache(const std::vector<job::FeatureSpec>& features,
              const std::vector<table::TableSpec>& tables,
              backend::Device& device,
              ThreadPool& pool,
              const Options& options);
  ~SharedCache();

  const FeatureLayout& layout() const;  // of pooled rows
  std::unique_ptr<SharedBatch> make_batch();

  // Planner thread: as RowAccess.
  std::int64_t look_ahead() const;
  void look_at(const data::Batch& batch, std::int64_t step);

  // Any thread.
  void stop();
  /// A hit is a key whose copy could be read as it was, a miss one whose row has come. How many
  /// bytes have come is not known here, nor what another size would miss: most copies are too old.
  CacheCounts counts() const;

  class Impl;

 private:
  const std::unique_ptr<Impl> impl_;
};

}  // namespace satrap::embedding
