#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "satrap/backend/memory.h"
#include "satrap/backend/stream.h"
#include "satrap/embedding/shared_cache.h"
#include "src/embedding/device_columns.h"
#include "src/embedding/group_caches.h"
#include "src/embedding/index.h"

namespace satrap::embedding {

/// The caches of copies and their versions: what the batches share. A step is completed when it has
/// been pooled.
class SharedCache::Impl : public GroupCaches {
 public:
  Impl(const std::vector<job::FeatureSpec>& features,
       const std::vector<table::TableSpec>& tables,
       backend::Device& the_device,
       ThreadPool& threads,
       const SharedCache::Options& options);

  /// Planner thread: gives the rows of a batch their slots; those that it has not had are
  /// SharedBatch::kNoCopy.
  void resolve(const Parts& parts, std::int64_t step);

  /// Batches up to that of `step` have been pooled.
  void note_pooled(std::int64_t step) { note_completed(step); }

  /// The version of the copy in a slot of group g, or SharedBatch's two other values. The planner
  /// writes it when it gives the slot to a row, and the thread that pools when rows come: never
  /// both, because a slot is given away only after the batches that wait for its row.
  std::atomic<std::int64_t>& version(std::size_t g, std::int32_t slot) {
    return versions_[g][index(slot)];
  }

  void count_taken(std::int64_t hits, std::int64_t misses);
  CacheCounts counts() const;

  const table::StalenessBound staleness;
  const backend::Stream updates;  // of the thread that updates

  DeviceColumns pooled_columns;
  DeviceColumns gradient_columns;      // of the thread that updates
  backend::Memory sums, sums_on_host;  // of the gradients of one group's part

 private:
  std::vector<std::vector<std::atomic<std::int64_t>>> versions_;  // [groups, slots]
  std::atomic<std::int64_t> hits_{0}, misses_{0};
};

}  // namespace satrap::embedding
