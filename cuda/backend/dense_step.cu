#include <algorithm>

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

struct Vectors {
  const float* begins[kMaxAdded];
  int count;
};

/// A thread per element.
__global__ void __launch_bounds__(kThreads)
    add_vectors_in_order(Vectors vectors, std::int64_t count, float* sum) {
  for (std::int64_t i = global_thread(); i < count; i += num_threads()) {
    float total = vectors.begins[0][i];
#pragma unroll 4
    for (int v = 1; v < vectors.count; ++v) total += vectors.begins[v][i];
    sum[i] = total;
  }
}

}  // namespace

void CudaDevice::cancel_update(const CancelUpdate& operation, StreamRef stream) {
  const auto& [flag, plan] = operation;
  if (plan.num_ids > 0) launch(empty_plan, 1, stream, flag, plan.counts);
}

void CudaDevice::dropout_factors(const DropoutFactors& operation, StreamRef stream) {
  const auto& [dropout, first_example, rows, columns, out, stride] = operation;
  if (rows * columns == 0) return;
  launch(fill_factors, grids_.grid_for(rows * columns, kThreads), stream, dropout, first_example,
         rows, columns, out, stride);
}

void CudaDevice::add_in_order(const AddInOrder& operation, StreamRef stream) {
  check_arguments(operation);
  const auto& [vectors, count, sum] = operation;
  if (count == 0) return;
  Vectors added{};
  std::ranges::copy(vectors, added.begins);
  added.count = static_cast<int>(vectors.size());
  launch(add_vectors_in_order, grids_.grid_for(count, kThreads), stream, added, count, sum);
}

}  // namespace satrap::backend
