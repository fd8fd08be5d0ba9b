#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "satrap/core/thread_pool.h"
#include "satrap/embedding/batch_plan.h"

namespace satrap::embedding {

/// Sums the gradient of each key of a plan over its occurrences (order: kernels/sum_order.h), for
/// rows whose optimizer runs elsewhere.
void reduce_gradients(const BatchPlan& plan,
                      std::span<const std::int64_t> dims,  // [num_tables]
                      const float* grad_pooled,            // [num_examples, output_width]
                      std::span<float* const> gradients,   // [num_unique], of [dim] floats, out
                      std::vector<float>& scratch,         // kept by the caller from step to step
                      ThreadPool& pool);

}  // namespace satrap::embedding
