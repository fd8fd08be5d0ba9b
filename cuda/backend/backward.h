#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "cuda/backend/lanes.h"
#include "cuda/backend/launch.h"
#include "cuda/backend/quad.h"
#include "satrap/backend/operations.h"

/// The segment reduction of the backward pass, and the use of each key's gradient: `Sink` is called
/// once per key it takes, by the group of lanes that holds the sum. One group sums and finishes a
/// key with at most kSumChunk occurrences. Chunks and groups of longer ones are first summed to
/// memory, and a last pass adds those sums: up to kSumChunk^3 occurrences of a key, no group sums
/// more than kSumChunk vectors.
namespace satrap::backend {

/// Sums the gradient over occurrences [begin, end) in order: quads l + k * group.size in lane l.
template <FloatType kGrad, int kQuads>
__device__ inline void sum_occurrences(const Group& group,
                                       RowLanes lanes,
                                       const PlanView& plan,
                                       const void* grad,
                                       std::int64_t begin,
                                       std::int64_t end,
                                       float4 (&sum)[kQuads]) {
  constexpr int kRows = kQuads == 1 ? 4 : kQuads == 2 ? 2 : 1;  // in flight
#pragma unroll
  for (int k = 0; k < kQuads; ++k) sum[k] = make_float4(0, 0, 0, 0);
  for (std::int64_t first = begin; first < end; first += group.size) {
    const std::int64_t j = first + group.lane;
    const std::uint32_t my_target = j < end ? plan.occurrence_targets[j] : 0;
    const float my_factor = j < end ? plan.occurrence_coefficients[j] : 0.0F;
    const int count = end - first < group.size ? static_cast<int>(end - first) : group.size;
    for (int i = 0; i < count; i += kRows) {
      float4 row[kRows][kQuads];
      float factor[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int source = (i + r) & (group.size - 1);
        const std::int64_t target = group.shuffle(my_target, source);
        factor[r] = group.shuffle(my_factor, source);
#pragma unroll
        for (int k = 0; k < kQuads; ++k) {
          const int quad = group.lane + k * group.size;
          row[r][k] = i + r < count && quad < lanes.quads ? load_quad<kGrad>(grad, target + quad)
                                                          : make_float4(0, 0, 0, 0);
        }
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (i + r >= count) break;
#pragma unroll
        for (int k = 0; k < kQuads; ++k) sum[k] = fma_quad(factor[r], row[r][k], sum[k]);
      }
    }
  }
}

/// Pass one, short segments: a key per group of lanes, from its occurrences to the sink.
template <FloatType kGrad, int kQuads, class Sink>
__global__ void __launch_bounds__(kThreads, kQuads <= 2 ? 8 : 4)
    reduce_short_segments(PlanView plan, RowLanes lanes, const void* grad, Sink sink) {
  const Group group(lanes.log2_lanes);
  const std::int64_t num_unique = plan.counts->unique;
  for (std::int64_t u = global_group(lanes.log2_lanes); u < num_unique;
       u += num_groups(lanes.log2_lanes)) {
    const std::int64_t begin = plan.segments[u];
    const std::int64_t end = plan.segments[u + 1];
    if (end - begin > kSumChunk || !sink.takes(plan, u)) continue;
    float4 sum[kQuads] = {};
    sum_occurrences<kGrad>(group, lanes, plan, grad, begin, end, sum);
    sink(group, lanes, plan, u, sum);
  }
}

/// Pass one, long segments: a chunk per group of lanes.
template <FloatType kGrad, int kQuads>
__global__ void __launch_bounds__(kThreads, kQuads <= 2 ? 8 : 4)
    reduce_chunks(PlanView plan, RowLanes lanes, const void* grad) {
  const Group group(lanes.log2_lanes);
  const std::int64_t num_chunks = plan.counts->chunks;
  for (std::int64_t c = global_group(lanes.log2_lanes); c < num_chunks;
       c += num_groups(lanes.log2_lanes)) {
    // The last segment whose chunks begin at or before c.
    std::int64_t l = 0, end = plan.counts->longs;
    while (end - l > 1) {
      const std::int64_t middle = (l + end) / 2;
      (plan.long_chunks[middle] <= c ? l : end) = middle;
    }
    const std::uint32_t u = plan.long_unique[l];
    const std::int64_t first = plan.segments[u] + (c - plan.long_chunks[l]) * kSumChunk;
    const std::int64_t segment_end = plan.segments[u + 1];
    const std::int64_t last = first + kSumChunk < segment_end ? first + kSumChunk : segment_end;
    float4 sum[kQuads] = {};
    sum_occurrences<kGrad>(group, lanes, plan, grad, first, last, sum);
#pragma unroll
    for (int k = 0; k < kQuads; ++k) {
      const int quad = group.lane + k * group.size;
      if (quad < lanes.quads) {
        store_quad<FloatType::kFp32>(plan.partial_sums, c * lanes.quads + quad, sum[k]);
      }
    }
  }
}

/// Adds vectors [begin, end) of an array in order.
template <int kQuads>
__device__ inline void add_vectors(const Group& group,
                                   RowLanes lanes,
                                   const float* vectors,
                                   std::int64_t begin,
                                   std::int64_t end,
                                   float4 (&sum)[kQuads]) {
#pragma unroll
  for (int k = 0; k < kQuads; ++k) {
    const int quad = group.lane + k * group.size;
    if (quad >= lanes.quads) continue;
    sum[k] = load_quad<FloatType::kFp32>(vectors, begin * lanes.quads + quad);
#pragma unroll 4
    for (std::int64_t v = begin + 1; v < end; ++v) {
      sum[k] = add_quad(sum[k], load_quad<FloatType::kFp32>(vectors, v * lanes.quads + quad));
    }
  }
}

/// Pass two, segments of more than kSumChunk chunks: kSumChunk chunks per group of lanes.
template <int kQuads>
__global__ void __launch_bounds__(kThreads, 4) reduce_groups(PlanView plan, RowLanes lanes) {
  const Group group(lanes.log2_lanes);
  const std::int64_t total = plan.counts->groups;
  for (std::int64_t g = global_group(lanes.log2_lanes); g < total;
       g += num_groups(lanes.log2_lanes)) {
    std::int64_t l = 0, end = plan.counts->longs;
    while (end - l > 1) {
      const std::int64_t middle = (l + end) / 2;
      (plan.long_groups[middle] <= g ? l : end) = middle;
    }
    const std::int64_t first = plan.long_chunks[l] + (g - plan.long_groups[l]) * kSumChunk;
    const std::int64_t chunks_end = plan.long_chunks[l + 1];
    const std::int64_t last = first + kSumChunk < chunks_end ? first + kSumChunk : chunks_end;
    float4 sum[kQuads] = {};
    add_vectors(group, lanes, plan.partial_sums, first, last, sum);
#pragma unroll
    for (int k = 0; k < kQuads; ++k) {
      const int quad = group.lane + k * group.size;
      if (quad < lanes.quads) {
        store_quad<FloatType::kFp32>(plan.group_sums, g * lanes.quads + quad, sum[k]);
      }
    }
  }
}

/// Last pass: a long segment per group of lanes, from its chunks or groups to the sink.
template <int kQuads, class Sink>
__global__ void __launch_bounds__(kThreads, kQuads <= 2 ? 8 : 4)
    finish_long_segments(PlanView plan, RowLanes lanes, Sink sink) {
  const Group group(lanes.log2_lanes);
  const std::int64_t num_longs = plan.counts->longs;
  for (std::int64_t l = global_group(lanes.log2_lanes); l < num_longs;
       l += num_groups(lanes.log2_lanes)) {
    const std::int64_t u = plan.long_unique[l];
    if (!sink.takes(plan, u)) continue;
    const bool grouped = plan.long_groups[l + 1] != plan.long_groups[l];
    const std::uint32_t* bounds = grouped ? plan.long_groups : plan.long_chunks;
    float4 sum[kQuads] = {};
    add_vectors(group, lanes, grouped ? plan.group_sums : plan.partial_sums, bounds[l],
                bounds[l + 1], sum);
    sink(group, lanes, plan, u, sum);
  }
}

/// Queues all passes. `Sink<kQuads>` is made by make_sink(integral_constant<int, kQuads>).
template <class MakeSink>
void launch_backward(const Grids& grids,
                     std::int64_t padded_dim,
                     const PlanView& plan,
                     FloatType grad_type,
                     const void* grad,
                     StreamRef stream,
                     MakeSink&& make_sink) {
  if (plan.num_ids == 0) return;
  const RowLanes lanes = row_lanes(padded_dim);
  const std::int64_t groups_per_block = kThreads >> lanes.log2_lanes;
  const std::int64_t max_chunks = 2 * plan.num_ids / kSumChunk;
  const std::int64_t max_groups = 2 * max_chunks / kSumChunk;
  with_quads_per_lane(lanes, [&](auto quads) {
    constexpr int kQuads = quads();
    const auto sink = make_sink(quads);
    using Sink = std::remove_const_t<decltype(sink)>;
    const auto reduce = [&](auto type) {
      launch(reduce_short_segments<type(), kQuads, Sink>,
             grids.grid_for(plan.num_ids, groups_per_block), stream, plan, lanes, grad, sink);
      if (max_chunks > 0) {
        launch(reduce_chunks<type(), kQuads>, grids.grid_for(max_chunks, groups_per_block), stream,
               plan, lanes, grad);
      }
    };
    switch (grad_type) {
      case FloatType::kFp32:
        reduce(std::integral_constant<FloatType, FloatType::kFp32>{});
        break;
      case FloatType::kBf16:
        reduce(std::integral_constant<FloatType, FloatType::kBf16>{});
        break;
      case FloatType::kFp16:
        reduce(std::integral_constant<FloatType, FloatType::kFp16>{});
        break;
    }
    if (max_chunks == 0) return;
    if (max_groups > 0) {
      launch(reduce_groups<kQuads>, grids.grid_for(max_groups, groups_per_block), stream, plan,
             lanes);
    }
    launch(finish_long_segments<kQuads, Sink>, grids.grid_for(max_chunks, groups_per_block), stream,
           plan, lanes, sink);
  });
}

}  // namespace satrap::backend
