#pragma once

#include <cstddef>
#include <cstdint>

#include "satrap/core/thread_pool.h"
#include "satrap/data/batch.h"
#include "satrap/embedding/batch_plan.h"
#include "satrap/embedding/feature_layout.h"
#include "satrap/kernels/pool.h"

namespace satrap::embedding {

/// Destination of the forward pass.
struct PooledOutput {
  float* pooled;  // [num_examples, output_width]
  std::int64_t pooled_stride;
  float* mask;  // [num_examples, mask_width]
  std::int64_t mask_stride;
};

/// The forward pass: gathers the weights of the plan's rows and pools them into the dense network's
/// input, wherever the rows are.
void pool_rows(const FeatureLayout& layout,
               const BatchPlan& plan,
               const data::Batch& batch,
               const std::byte* const* rows,  // [num_unique]
               std::int64_t weights_offset,   // bytes from the start of a row
               const PooledOutput& out,
               ThreadPool& pool);

/// The mask alone, for rows that are pooled elsewhere.
void write_mask(const FeatureLayout& layout,
                const data::Batch& batch,
                float* mask,  // [num_examples, mask_width]
                std::int64_t mask_stride);

/// The occurrences of all keys of a plan, for reduce_segment.
inline Occurrences occurrences_of(const BatchPlan& plan, const float* grad_pooled) {
  return {grad_pooled, plan.output_offset.data(), plan.occurrence_coefficient.data(),
          plan.num_occurrences()};
}

}  // namespace satrap::embedding
