#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "satrap/data/batch.h"
#include "satrap/data/batch_source.h"
#include "satrap/embedding/row_access.h"

namespace satrap::pipeline {

/// What all ranks have of a step's global batch.
struct RankShares {
  std::int64_t global_examples = 0;           // of all ranks
  std::int64_t first_example = 0;             // rows of the ranks before this one
  std::vector<data::DataPosition> positions;  // [num_ranks] after this step's batches
};

/// One step on its way through the trainer: read and planned (planner thread), looked up (embedding
/// thread), trained on (dense thread), updated (embedding thread), and back to the planner, which
/// reuses its memory. Owned by the pipeline; in the hands of one stage at a time.
struct Work {
  std::int64_t step = 0;  // from 1
  data::Batch batch;      // of this rank; may be empty if other ranks have rows
  RankShares shares;
  std::unique_ptr<embedding::BatchRows> rows;

  // Looked up. E_v: the embedding state after all updates of step v and no later one.
  std::int64_t read_version = 0;  // v of the state that the lookup read (at least)
  std::vector<float> pooled;      // [num_examples, output_width]
  std::vector<float> mask;        // [num_examples, mask_width]
  std::vector<float> numeric;  // [num_examples, num_numeric + mask_width]; unused if no sequences

  // Trained on.
  std::vector<float> probabilities;  // [num_examples]
  std::vector<float> grad_pooled;    // [num_examples, output_width]
  bool skip_update = false;          // the step was not finite
};

}  // namespace satrap::pipeline
