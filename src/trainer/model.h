#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "satrap/core/thread_pool.h"
#include "satrap/data/schema.h"
#include "satrap/dense/dense_network.h"
#include "satrap/embedding/embedding_worker.h"
#include "satrap/ps/table.h"
#include "satrap/trainer/config.h"

namespace satrap::trainer {

/// Everything that is trained: the embedding tables and the dense network of a job, with the worker
/// between them. Built from the configuration and the resolved schema; contents are those of step 0
/// until a checkpoint is loaded.
struct Model {
  Model(const JobConfig& config, const data::Schema& schema, ThreadPool& pool);

  std::vector<embedding::FeatureSpec> features;
  std::vector<std::unique_ptr<ps::Table>> tables;  // by TableId
  std::unique_ptr<embedding::EmbeddingWorker> worker;
  std::unique_ptr<dense::DenseNetwork> network;

  /// Another worker over the same tables, for a thread that must not share the plan buffers of
  /// `worker`. The model outlives it.
  std::unique_ptr<embedding::EmbeddingWorker> make_worker(ThreadPool& pool) const;

  std::int64_t num_rows() const;
  std::int64_t table_bytes() const;
};

/// Throws Error(kInvalidConfig) if features, tables and model of a job do not fit together. Reads
/// no data.
void check_model(const JobConfig& config);

/// The precision in force: `auto` is fp32 on CPUs, where bf16 GEMM is slower without AMX.
dense::Precision resolve_precision(const TrainConfig& config);

}  // namespace satrap::trainer
