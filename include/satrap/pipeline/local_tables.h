#pragma once

#include <memory>
#include <vector>

#include "satrap/backend/device.h"
#include "satrap/core/thread_pool.h"
#include "satrap/embedding/table_rows.h"
#include "satrap/pipeline/embedding_tables.h"
#include "satrap/table/table.h"
#include "satrap/table/table_row_store.h"

namespace satrap::pipeline {

/// Tables in this process; kernels work on them in place.
class LocalTables final : public EmbeddingTables {
 public:
  LocalTables(const job::EmbeddingSpecs& specs, ThreadPool& pool);

  void begin(const InitialRows& rows) override;
  embedding::RowAccess& access() override { return *access_; }
  std::unique_ptr<StepDriver> make_driver(StepQueue& queue,
                                          StepDriver::Options options,
                                          StageTimers& timers) override;
  std::unique_ptr<RowsSnapshot> take_snapshot(std::int64_t step) override;
  Size size() override;

  /// Lets the device read rows in the tables, where it can; the log says once where it cannot.
  /// After it, begin() and all else. The device outlives the tables.
  void register_rows(backend::Device& device);

  /// The same rows, for a cache: tables without limits. They may only change through it then.
  table::RowStore& row_store();

 private:
  ThreadPool& pool_;
  std::vector<std::unique_ptr<table::Table>> tables_;  // by TableId
  std::unique_ptr<embedding::TableRows> access_;
  std::unique_ptr<table::TableRowStore> row_store_;
};

}  // namespace satrap::pipeline
