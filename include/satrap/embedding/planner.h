#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "satrap/core/thread_pool.h"
#include "satrap/data/batch.h"
#include "satrap/embedding/batch_plan.h"
#include "satrap/embedding/feature_layout.h"
#include "satrap/kernels/sort_unique.h"
#include "satrap/table/sharding.h"

namespace satrap::embedding {

/// Finds the rows of a plan's keys while the keys are in a CPU cache: the keys [first, first +
/// keys.size()) of the plan, ascending, all of `table`. Threads of the pool call it in parallel for
/// different keys: no two calls share a partition.
using FindRows = std::function<void(TableId table, std::span<const Key> keys, std::int64_t first)>;

/// Makes plans. The ids become (key, position) pairs grouped by table; large tables are split into
/// buckets by the highest bits of the key, so that each bucket is sorted, made unique and looked up
/// by one thread, in its cache. A bucket holds whole partitions, so lookups need no coordination.
/// Nothing depends on the number of threads. Keeps its buffers; one call at a time.
class Planner {
 public:
  /// `layout` and `pool` outlive it.
  Planner(const FeatureLayout& layout, ThreadPool& pool);

  /// `find`: empty if the rows are found elsewhere.
  void plan(const data::Batch& batch, BatchPlan& plan, const FindRows& find = {});

 private:
  static constexpr int kMaxBucketBits = table::kPartitionBits;
  static constexpr std::size_t kMaxBuckets = std::size_t{1} << kMaxBucketBits;

  /// Consecutive examples of one feature: the unit of work on ids.
  struct Chunk {
    std::size_t feature;
    std::int64_t row_begin, row_end;
    std::int64_t item_begin;                             // its first pair
    int bucket_bits;                                     // of its table
    std::array<std::int64_t, kMaxBuckets> bucket_items;  // counts, then places of the next pair
  };
  /// The pairs of some consecutive partitions of one table: the unit of work on keys.
  struct Bucket {
    TableId table;
    std::span<KeyOccurrence> items, scratch;
    DistinctCounts counts;
    std::int64_t unique_begin, occurrence_begin, range_begin;
  };

  void make_unique(const data::Batch& batch, BatchPlan& plan);
  void make_chunks(const data::Batch& batch);
  std::int64_t num_items(const data::Batch& batch, const Chunk& chunk) const;
  void make_items(const data::Batch& batch, Chunk& chunk, BatchPlan& plan);
  void make_buckets();
  void scatter(Chunk& chunk);
  void emit(const Bucket& bucket, BatchPlan& plan) const;
  static void make_update_units(BatchPlan& plan);

  const FeatureLayout& layout_;
  ThreadPool& pool_;
  std::vector<std::vector<std::size_t>> features_of_table_;  // ascending
  std::vector<Chunk> chunks_;                                // by table, feature, example
  std::vector<std::size_t> first_chunk_of_table_;            // [num_tables + 1]
  std::vector<Bucket> buckets_;                              // by key
  std::vector<KeyOccurrence> items_, other_items_;
};

}  // namespace satrap::embedding
