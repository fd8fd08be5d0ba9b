#pragma once

#include <memory>
#include <vector>

#include "satrap/core/thread_pool.h"
#include "satrap/embedding/embedding_worker.h"
#include "satrap/pipeline/embedding_store.h"
#include "satrap/table/table.h"

namespace satrap::pipeline {

/// Tables in this process, which kernels work on in place.
class TablesStore final : public EmbeddingStore {
 public:
  TablesStore(const job::EmbeddingSpecs& specs, ThreadPool& pool);

  void begin(const InitialRows& rows) override;
  std::unique_ptr<EmbeddingStage> make_stage(EmbeddingStage::Options options,
                                             StageTimers& timers) override;
  std::unique_ptr<RowReader> make_reader() override;
  std::unique_ptr<RowsSnapshot> take_snapshot(std::int64_t step) override;
  Size size() override;

  embedding::EmbeddingWorker& worker() { return *worker_; }

 private:
  std::unique_ptr<embedding::EmbeddingWorker> make_worker() const;

  const job::EmbeddingSpecs specs_;
  ThreadPool& pool_;
  std::vector<std::unique_ptr<table::Table>> tables_;  // by TableId
  std::unique_ptr<embedding::EmbeddingWorker> worker_;
};

}  // namespace satrap::pipeline
