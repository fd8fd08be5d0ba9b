#include <cuda_runtime.h>

#include "cuda/backend/cuda_device.h"
#include "cuda/backend/lanes.h"
#include "cuda/backend/quad.h"

namespace satrap::backend {

namespace {

/// A vector of the output: its ids and its place, in quads.
struct Vector {
  std::int64_t begin, end, quad;
};

__device__ Vector locate(const Bags& bags, std::int64_t number, int quads_per_vector) {
  std::int64_t f = 0, end = bags.num_features;  // the last feature that begins at or before it
  while (end - f > 1) {
    const std::int64_t middle = (f + end) / 2;
    (bags.features[middle].first_vector <= number ? f : end) = middle;
  }
  const BagFeature feature = bags.features[f];
  const auto within = static_cast<std::uint32_t>(number - feature.first_vector);
  const auto per_row = static_cast<std::uint32_t>(feature.vectors_per_row);
  const std::uint32_t row = per_row == 1 ? within : within / per_row;
  const std::uint32_t element = within - row * per_row;
  const std::int64_t bag = f * bags.num_examples + row;
  Vector v{bags.offsets[bag], bags.offsets[bag + 1],
           (row * bags.row_stride + feature.column) / 4 +
               static_cast<std::int64_t>(element) * quads_per_vector};
  if (feature.pooling == Pooling::kSequence) {
    v.begin += element;
    if (v.begin < v.end) v.end = v.begin + 1;
  }
  return v;
}

/// Rows in flight per group: enough to hide the latency of one, few enough for the registers.
template <int kQuads>
constexpr int kRowsInFlight = kQuads == 1   ? 4
                              : kQuads == 2 ? 2
                                            : 1;

/// A vector of the output per group of lanes.
template <FloatType kWeights, int kQuads>
__global__ void __launch_bounds__(kThreads, kQuads <= 2 ? 8 : 4) pool_rows(CacheView cache,
                                                                           Bags bags,
                                                                           PlanView plan,
                                                                           RowLanes lanes,
                                                                           FloatType out_type,
                                                                           void* out) {
  constexpr int kRows = kRowsInFlight<kQuads>;
  const Group group(lanes.log2_lanes);
  for (std::int64_t n = global_group(lanes.log2_lanes); n < bags.num_vectors;
       n += num_groups(lanes.log2_lanes)) {
    const Vector vector = locate(bags, n, lanes.quads);
    float4 sum[kQuads] = {};
    for (int k = 0; k < kQuads; ++k) sum[k] = make_float4(0, 0, 0, 0);

    for (std::int64_t first = vector.begin; first < vector.end; first += group.size) {
      // The group's lanes load the data of the next ids together, and exchange them.
      const std::int64_t id = first + group.lane;
      const std::int32_t unique = id < vector.end ? plan.unique_of[id] : -1;
      const std::int32_t my_slot = unique < 0 ? -1 : plan.slots[unique];
      const float my_factor = id < vector.end ? plan.coefficients[id] : 0.0F;
      const int count =
          vector.end - first < group.size ? static_cast<int>(vector.end - first) : group.size;
      for (int i = 0; i < count; i += kRows) {
        float4 row[kRows][kQuads];
        float factor[kRows];
        bool valid[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const int source = (i + r) & (group.size - 1);
          const std::int64_t slot = group.shuffle(my_slot, source);
          factor[r] = group.shuffle(my_factor, source);
          valid[r] = i + r < count && slot >= 0;
          const std::byte* weights = cache.rows + slot * cache.layout.device_stride;
#pragma unroll
          for (int k = 0; k < kQuads; ++k) {
            const int quad = group.lane + k * group.size;
            row[r][k] = valid[r] && quad < lanes.quads ? load_quad<kWeights>(weights, quad)
                                                       : make_float4(0, 0, 0, 0);
          }
        }
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          if (!valid[r]) continue;
#pragma unroll
          for (int k = 0; k < kQuads; ++k) sum[k] = fma_quad(factor[r], row[r][k], sum[k]);
        }
      }
    }
#pragma unroll
    for (int k = 0; k < kQuads; ++k) {
      const int quad = group.lane + k * group.size;
      if (quad < lanes.quads) store_quad(out_type, out, vector.quad + quad, sum[k]);
    }
  }
}

}  // namespace

void CudaDevice::pool_forward(const CacheView& cache,
                              const Bags& bags,
                              const PlanView& plan,
                              FloatType out_type,
                              void* out,
                              StreamRef stream) {
  if (bags.num_vectors == 0) return;
  const RowLanes lanes = row_lanes(cache.layout.padded_dim);
  const unsigned grid = grids_.grid_for(bags.num_vectors, kThreads >> lanes.log2_lanes);
  with_quads_per_lane(lanes, [&](auto quads) {
    const auto run = [&](auto kernel) {
      launch(kernel, grid, stream, cache, bags, plan, lanes, out_type, out);
    };
    switch (cache.layout.weight_type) {
      case FloatType::kFp32:
        return run(pool_rows<FloatType::kFp32, quads()>);
      case FloatType::kBf16:
        return run(pool_rows<FloatType::kBf16, quads()>);
      case FloatType::kFp16:
        return run(pool_rows<FloatType::kFp16, quads()>);
    }
  });
}

}  // namespace satrap::backend
