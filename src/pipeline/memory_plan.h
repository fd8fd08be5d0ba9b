#pragma once

#include <cstdint>
#include <string>

namespace satrap::pipeline {

/// What a job takes of a GPU's memory at least, in bytes. Bags of several ids, and rows that do not
/// fit in their sets of the cache while they are in use, take more: that is known once batches
/// come.
struct MemoryPlan {
  std::int64_t free = 0;     // before anything of the job is there
  std::int64_t cache = 0;    // of rows
  std::int64_t network = 0;  // parameters, gradient, statistics, optimizer state
  std::int64_t batches = 0;  // ids, plans, pooled rows and their gradients of all batches in flight
  std::int64_t exchange =
      0;  // plans and vectors of rows that other ranks' GPUs have, parts of sums
  std::int64_t libtorch = 0;  // an estimate: its kernels, and what it keeps between passes

  std::int64_t needed() const { return cache + network + batches + exchange + libtorch; }

  /// Throws Error(kInvalidConfig), with the arithmetic, if it is more than there is.
  void check() const;

  std::string describe() const;
};

/// Numbers of the batches of a job.
struct BatchNeeds {
  std::int64_t batches = 0;           // planned, looked up or trained on at a time
  std::int64_t examples = 0;          // of one
  std::int64_t columns = 0;           // pooled, of an example
  std::int64_t device_columns = 0;    // the same, if works keep them and their gradient on the GPU
  std::int64_t ids = 0;               // of an example, at least
  std::int64_t numbers = 0;           // other inputs and outputs of an example
  std::int64_t num_parameters = 0;    // of the network; 0: it is not on the GPU
  std::int64_t optimizer_values = 0;  // per parameter
  bool has_libtorch = false;          // computes with memory of its own there
  bool exchanges_rows = false;        // with the GPUs of other ranks
  bool sums_in_order = false;         // the dense gradients of the ranks
  std::int64_t cache_bytes = 0, free_bytes = 0;
};
MemoryPlan plan_memory(const BatchNeeds& needs);

}  // namespace satrap::pipeline
