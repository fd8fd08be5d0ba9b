#include <cuda_runtime.h>

#include "cuda/backend/cuda_device.h"
#include "cuda/backend/lanes.h"
#include "src/backend/arguments.h"

namespace satrap::backend {

namespace {

__global__ void __launch_bounds__(kThreads) empty_plan(const float* flag, PlanCounts* counts) {
  if (global_thread() == 0 && *flag != 0.0F) *counts = {};
}

/// A thread per element.
__global__ void __launch_bounds__(kThreads) fill_factors(Dropout dropout,
                                                         std::int64_t first_example,
                                                         std::int64_t rows,
                                                         std::int64_t columns,
                                                         float* out,
                                                         std::int64_t stride) {
  for (std::int64_t i = global_thread(); i < rows * columns; i += num_threads()) {
    const std::int64_t row = i / columns, column = i % columns;
    out[row * stride + column] = dropout.factor(dropout.draws_of(first_example + row), column);
  }
}

}  // namespace

void CudaDevice::cancel_update(const float* flag, const PlanView& plan, StreamRef stream) {
  if (plan.num_ids > 0) launch(empty_plan, 1, stream, flag, plan.counts);
}

void CudaDevice::dropout_factors(const Dropout& dropout,
                                 std::int64_t first_example,
                                 std::int64_t rows,
                                 std::int64_t columns,
                                 float* out,
                                 std::int64_t stride,
                                 StreamRef stream) {
  if (rows * columns == 0) return;
  launch(fill_factors, grids_.grid_for(rows * columns, kThreads), stream, dropout, first_example,
         rows, columns, out, stride);
}

}  // namespace satrap::backend
