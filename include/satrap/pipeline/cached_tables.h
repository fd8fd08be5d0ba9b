#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "satrap/backend/device.h"
#include "satrap/core/thread_pool.h"
#include "satrap/embedding/cached_rows.h"
#include "satrap/job/embedding_specs.h"
#include "satrap/pipeline/embedding_tables.h"
#include "satrap/table/row_store.h"

namespace satrap::pipeline {

/// Tables, wherever they are, with a cache of their rows in a device's memory, where the rows are
/// trained. One rank only: its cache is the only writer of the rows.
class CachedTables final : public EmbeddingTables {
 public:
  /// `store` has the rows of `tables`, and may be part of them; it and `pool` live as long.
  CachedTables(const job::EmbeddingSpecs& specs,
               std::unique_ptr<EmbeddingTables> tables,
               table::RowStore& store,
               const embedding::CachedRows::Options& options,
               ThreadPool& pool);
  ~CachedTables() override;

  void begin(const InitialRows& rows) override { tables_->begin(rows); }
  embedding::RowAccess& access() override { return rows_; }
  std::unique_ptr<StepDriver> make_driver(StepQueue& queue,
                                          StepDriver::Options options,
                                          StageTimers& timers) override;

  /// Copies the changed rows aside. The snapshot is taken in the background, once they are in their
  /// tables; it has the rows of `step`.
  std::unique_ptr<RowsSnapshot> take_snapshot(std::int64_t step) override;
  Size size() override;
  std::optional<embedding::CacheCounts> cache() override { return rows_.counts(); }

 private:
  const std::unique_ptr<EmbeddingTables> tables_;
  const std::unique_ptr<backend::Device> device_;
  embedding::CachedRows rows_;
};

}  // namespace satrap::pipeline
