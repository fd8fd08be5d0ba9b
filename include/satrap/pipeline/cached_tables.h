#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>

#include "satrap/backend/device.h"
#include "satrap/collective/device_communicator.h"
#include "satrap/core/thread_pool.h"
#include "satrap/embedding/cached_rows.h"
#include "satrap/job/embedding_specs.h"
#include "satrap/pipeline/cluster.h"
#include "satrap/pipeline/embedding_tables.h"
#include "satrap/table/row_store.h"

namespace satrap::pipeline {

class PartitionedRows;

/// Tables, wherever they are, with a cache of their rows in a device's memory, where the rows are
/// trained. Each row has one writer: with several ranks, each has the cache of a part of the keys.
/// They then look up and update in one order, as if deterministic, so that every run gives the same
/// bits.
class CachedTables final : public EmbeddingTables {
 public:
  /// `store` has the rows of `tables`, and may be part of them; it, `device`, `pool`, `cluster` and
  /// `device_ranks` live as long. With several ranks `options.update_delay` is the bound τ(t) of
  /// their order; with `device_ranks`, they exchange rows from GPU to GPU.
  CachedTables(const job::EmbeddingSpecs& specs,
               std::unique_ptr<EmbeddingTables> tables,
               table::RowStore& store,
               const embedding::CachedRows::Options& options,
               backend::Device& device,
               ThreadPool& pool,
               Cluster& cluster,
               collective::DeviceCommunicator* device_ranks = nullptr);
  ~CachedTables() override;

  void begin(const InitialRows& rows) override { tables_->begin(rows); }
  embedding::RowAccess& access() override;
  std::unique_ptr<StepDriver> make_driver(StepQueue& queue,
                                          StepDriver::Options options,
                                          StageTimers& timers) override;

  /// Copies the changed rows aside. The snapshot is taken in the background, once they are in their
  /// tables; it has the rows of `step`.
  std::unique_ptr<RowsSnapshot> take_snapshot(std::int64_t step) override;
  void join_snapshot() override;
  void wait_joined() override;
  void flush() override;
  Size size() override;
  std::optional<embedding::CacheCounts> cache() override { return rows_.counts(); }

 private:
  void save(std::function<void()> take);

  const std::unique_ptr<EmbeddingTables> tables_;
  const table::StalenessBound bound_;             // of several ranks
  std::unique_ptr<PartitionedRows> partitioned_;  // of several ranks
  embedding::CachedRows rows_;                    // its threads end before the ranks part
  std::future<void> joined_;                      // of the last snapshot
};

}  // namespace satrap::pipeline
