#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "satrap/backend/device_matrix.h"
#include "satrap/core/float_matrix.h"
#include "satrap/data/batch.h"
#include "satrap/data/batch_source.h"
#include "satrap/embedding/row_access.h"
#include "satrap/pipeline/pooled_batch.h"

namespace satrap::pipeline {

/// The shares of all ranks in a step's global batch.
struct RankShares {
  std::int64_t global_examples = 0;           // of all ranks
  std::int64_t first_example = 0;             // examples of the ranks before this one
  std::vector<data::DataPosition> positions;  // [num_ranks] after this step's batches
  std::int64_t ended_epochs = 0;              // complete with this step, if it ends one; else 0
  std::int64_t lag = -1;      // of all ranks if each reads partitions of its own, as ReadStats::lag
  std::int64_t time_ms = -1;  // the same, as ReadStats::time_ms
  std::vector<double> read_seconds;  // [num_ranks] that each has waited for its data so far
};

/// One step on its way through the trainer: read and planned (planner thread), looked up (embedding
/// thread), trained on (dense thread), updated (embedding thread), and back to the planner, which
/// reuses its memory. Owned by the pipeline; in the hands of one stage at a time, except that the
/// dense stage retires the step while its rows are updated: both only read then.
struct Work {
  std::int64_t step = 0;  // from 1
  data::Batch batch;      // of this rank; may be empty if other ranks have examples
  RankShares shares;
  std::unique_ptr<embedding::BatchRows> rows;

  // Looked up. E_v: the embedding state after all updates of step v and no later one.
  std::int64_t read_version = 0;  // v of the state that the lookup read (at least)
  PooledBatch inputs;

  // Trained on.
  HostMatrix probabilities;         // [num_examples, DenseNetwork::num_outputs]
  std::vector<float> loss_weights;  // [num_examples, num_labels], if the examples have weights
  HostMatrix grad_pooled;           // [num_examples, output_width]
  float nonfinite = 0.0F;           // not 0: the loss or a gradient of some rank is not finite

  // In place of these two, where the pooled rows are in a device's memory.
  const embedding::DeviceRows* device = nullptr;
  backend::DeviceMatrix grad_on_device, nonfinite_on_device;

  /// Makes room for a gradient like inputs.pooled().
  void begin_outputs(const embedding::DeviceRows* device_of_rows);
  FloatMatrix gradient() { return device == nullptr ? grad_pooled.view() : grad_on_device.view(); }
  embedding::SkipFlag skip() const;
  float* flag() { return device == nullptr ? &nonfinite : nonfinite_on_device.data(); }
};

}  // namespace satrap::pipeline
