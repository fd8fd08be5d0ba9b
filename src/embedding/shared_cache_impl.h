#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "satrap/backend/memory.h"
#include "satrap/backend/stream.h"
#include "satrap/embedding/row_groups.h"
#include "satrap/embedding/shared_cache.h"
#include "src/embedding/group_cache.h"
#include "src/embedding/index.h"

namespace satrap::embedding {

/// The caches of all row groups and the versions of the copies in them: what the batches share.
class SharedCache::Impl {
 public:
  Impl(const std::vector<job::FeatureSpec>& features,
       const std::vector<table::TableSpec>& tables,
       backend::Device& the_device,
       ThreadPool& threads,
       const Options& the_options);

  using Parts = std::vector<std::unique_ptr<GroupPart>>;
  Parts make_parts() const;  // of the groups that features read

  // Planner thread. fill: puts a batch into parts, and queues its way to the device; the first one
  // decides the size of the caches.
  void fill(const Parts& parts, const data::Batch& batch, std::int64_t step);
  void look_at(const data::Batch& batch, std::int64_t step);
  void resolve(const Parts& parts, std::int64_t step);
  std::int64_t look_ahead() const { return look_ahead_; }

  /// Batches up to that of `step` have been pooled.
  void note_pooled(std::int64_t step);
  void stop();

  /// The version of the copy in a slot of group g, or SharedBatch's two other values. The planner
  /// writes it when it gives the slot to a row, and the thread that pools when rows come: never
  /// both, because a slot is given away only after the batches that wait for its row.
  std::atomic<std::int64_t>& version(std::size_t g, std::int32_t slot) {
    return versions_[g][index(slot)];
  }

  void count_taken(std::int64_t hits, std::int64_t misses);
  CacheCounts counts() const;

  const RowGroups groups;
  const FeatureLayout on_host, on_device;
  backend::Device& device;
  ThreadPool& pool;
  const Options options;
  const backend::Stream planning, compute, updates;  // one for each thread

  // One per group with features, in the order of groups; made once.
  std::vector<std::unique_ptr<GroupCache>> caches;

  std::vector<float> pooled_columns;    // of the device's layout, of one batch
  std::vector<float> gradient_columns;  // the same, of the thread that updates
  backend::Memory sums, sums_on_host;   // of the gradients of one group's part

 private:
  bool looks_ahead() const {
    return options.policy == backend::EvictionPolicy::kLookahead && options.max_look_ahead > 0;
  }
  std::int64_t expected_keys(const GroupPart& part) const;
  void make_caches(const Parts& parts, std::int64_t step);
  GroupCache::Numbers numbers(std::int64_t step, std::int64_t pooled) const;
  void wait_for_progress(std::int64_t step, std::int64_t pooled, const GroupCache& cache);

  Parts looked_at_;                                               // the batch that is looked at
  std::int64_t look_ahead_ = 0;                                   // batches
  std::int64_t steps_before_ = 0;                                 // the first batch's step - 1
  std::vector<std::vector<std::atomic<std::int64_t>>> versions_;  // [groups, slots]
  mutable std::mutex mutex_;                                      // guards caches' bookkeeping
  std::mutex progress_mutex_;
  std::condition_variable progress_;
  std::atomic<std::int64_t> pooled_{0};  // the last step
  bool is_stopped_ = false;
  std::atomic<std::int64_t> hits_{0}, misses_{0};
};

}  // namespace satrap::embedding
