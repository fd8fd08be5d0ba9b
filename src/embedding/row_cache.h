#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "satrap/backend/stream.h"
#include "satrap/embedding/cached_rows.h"
#include "src/embedding/device_array.h"
#include "src/embedding/device_columns.h"
#include "src/embedding/group_caches.h"
#include "src/embedding/miss_curve.h"
#include "src/embedding/plan_room.h"
#include "src/embedding/row_fetcher.h"
#include "src/embedding/write_back.h"

namespace satrap::embedding {

/// The caches of a job's rows, and the rows on their way between them and the store: what the
/// batches (CachedBatch, CachedKeys) share. A step is completed when its updates are in the rows.
///
/// The planner's thread makes the caches and resolves; another one, the owner of the rows, pools
/// and updates; a third one may save while no update runs.
class RowCache : public GroupCaches {
 public:
  RowCache(const std::vector<job::FeatureSpec>& features,
           const std::vector<table::TableSpec>& tables,
           std::uint64_t seed,
           table::RowStore& store,
           RowAccess& uncached_rows,
           backend::Device& the_device,
           ThreadPool& threads,
           const CachedRows::Options& options);

  /// Planner thread: gives the rows of a batch their slots, and lists those that are missing.
  void resolve(const Parts& parts, std::int64_t step);

  /// Queues the update by `gradients`, of the output of each part, unless *flag is not 0; `steps`
  /// is of these parts.
  void update(const Parts& parts,
              std::span<const float* const> gradients,
              std::int64_t step,
              QueuedArray<TableStep>& steps,
              const float* flag);
  void note_applied(std::int64_t step) { note_queued(step); }
  void stop();
  void save_changed();
  void flush();  // and waits until the store has them
  void count_fetched(std::span<const Key> keys);
  void sample(const Parts& parts, std::int64_t step);
  CacheCounts counts() const;

  /// Pooled rows or their gradient, of so many examples, must be in the device's memory.
  void check_on_device(const ConstFloatMatrix& matrix, std::int64_t num_examples) const;

  RowAccess& uncached;
  const bool reads_in_store;              // CachedRows::Options
  std::optional<DeviceRows> device_rows;  // with options.stream
  backend::StreamTimes* const times;      // or nullptr
  const backend::Stream copies;           // of fetches

  // Of one batch at a time: of pool() and update().
  DeviceColumns columns;
  std::vector<DeviceArray<float>> vectors;  // [num_groups] of keys, if the device is not the host

  // Of the planner's thread: for batches by key.
  std::vector<PlanRoom> rooms_by_key;  // [num_groups]

 private:
  static constexpr std::int64_t kMaxWaitingBytes = std::int64_t{256} << 20;  // to the store

  const std::int64_t memory_bytes_;
  std::vector<TableStep> table_steps_;
  const std::size_t num_tables_;
  std::atomic<bool> has_changed_{false};
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
