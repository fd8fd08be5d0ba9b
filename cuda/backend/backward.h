#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "cuda/backend/lanes.h"
#include "cuda/backend/launch.h"
#include "cuda/backend/quad.h"
#include "satrap/backend/operations.h"

/// The segment reduction of the backward pass, and the use of each key's gradient. One group of
/// lanes sums and finishes a key with at most kSumChunk occurrences. Chunks and groups of longer
/// ones are first summed to memory, and a last pass adds those sums: up to kSumChunk^3 occurrences
/// of a key, no group sums more than kSumChunk vectors.
///
/// A `Sink` takes the sums. place_of(plan, unique) is where a key's goes; -1: nowhere, then it is
/// not summed. fetch(...) asks for what the use needs beside the sum, before the sum is there;
/// use(...) ends it. All lanes of a warp call both, those without a place too.
namespace satrap::backend {

/// Blocks per multiprocessor: as many as the registers of a lane's numbers leave room for.
template <int kQuads>
constexpr int kBlocks = kQuads == 1   ? 8
                        : kQuads == 2 ? 6
                        : kQuads == 4 ? 4
                                      : 3;

/// The occurrences that a group sums: [begin, begin + count), for the key or the chunk `number`.
struct alignas(16) Item {
  std::uint32_t begin, count, number;
  std::int32_t place;  // -1: nothing is summed
};

/// An occurrence per lane: loaded together, exchanged one after the other.
struct Occurrence {
  std::uint32_t target;
  float factor;

  __device__ Occurrence(const Group& group, const PlanView& plan, std::uint32_t begin, int count)
      : target(0), factor(kNoFactor) {
    if (group.lane >= count) return;
    const std::uint32_t occurrence = begin + static_cast<std::uint32_t>(group.lane);
    target = plan.occurrence_targets[occurrence];
    factor = plan.occurrence_coefficients[occurrence];
  }
};

/// Sums the gradient over occurrences [begin, begin + count) in order: quads l + 32 k in lane l.
/// `mine` is the lane's of the first ones.
template <FloatType kGrad, int kQuads>
__device__ inline void sum_occurrences(const Group& group,
                                       RowLanes lanes,
                                       const PlanView& plan,
                                       const void* grad,
                                       std::uint32_t begin,
                                       std::uint32_t count,
                                       Occurrence mine,
                                       float4 (&sum)[kQuads]) {
  constexpr int kRows = kQuads <= 2 ? 2 : 1;  // in flight; no group is smaller
  const auto* quads = static_cast<const StoredQuad<kGrad>*>(grad);
#pragma unroll
  for (int k = 0; k < kQuads; ++k) sum[k] = make_float4(0, 0, 0, 0);
  // All groups of the warp take as many turns as the one with the most occurrences.
  const auto turns = static_cast<int>(__reduce_max_sync(kAllLanes, count));
  const auto mine_turns = static_cast<int>(count);
  // If a row is one quad per lane, lanes beyond its end have no turn.
  const int loads = kQuads > 1 || group.lane < lanes.quads ? mine_turns : 0;
#pragma unroll 1
  for (int i = 0; i < turns; i += kRows) {
    if (i > 0 && (i & (group.size - 1)) == 0) {
      mine = Occurrence(group, plan, begin + static_cast<std::uint32_t>(i), mine_turns - i);
    }
    StoredQuad<kGrad> row[kRows][kQuads] = {};
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const std::uint32_t target = group.shuffle(mine.target, i + r);
#pragma unroll
      for (int k = 0; k < kQuads; ++k) {
        const int quad = group.lane + k * 32;
        if (i + r < loads && (kQuads == 1 || quad < lanes.quads)) {
          row[r][k] = quads[target + static_cast<std::uint32_t>(quad)];
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float factor = group.shuffle(mine.factor, i + r);
#pragma unroll
      for (int k = 0; k < kQuads; ++k) {
        sum[k] = fma_quad(factor, to_float4<kGrad>(row[r][k]), sum[k]);
      }
    }
  }
}

/// Sums num_items items per group, one located by each lane, and gives them to the sink. Before an
/// item is summed, the next one's occurrences and all that the sink needs are asked for. Items are
/// in shared memory: in registers, four per lane, they would leave no room for eight blocks.
template <FloatType kGrad, int kQuads, class Sink>
__device__ inline void reduce_items(const Group& group,
                                    RowLanes lanes,
                                    const PlanView& plan,
                                    const void* grad,
                                    const Item& my_item,
                                    int num_items,
                                    const Sink& sink) {
  static __shared__ Item all_items[kThreads];
  const Item* const items = all_items + (static_cast<int>(threadIdx.x) - group.lane);
  __syncwarp();  // orders memory: by collectives alone, all have read the items before these
  all_items[threadIdx.x] = my_item;
  __syncwarp();
  Occurrence first(group, plan, items[0].begin, static_cast<int>(items[0].count));
#pragma unroll 1
  for (int i = 0; i < num_items; ++i) {
    const Item now = items[i];
    typename Sink::Fetched fetched;
    sink.fetch(group, lanes, plan, now.number, now.place, fetched);
    const Occurrence first_now = first;
    const Item& next = items[(i + 1) & (group.size - 1)];
    first = Occurrence(group, plan, next.begin, static_cast<int>(next.count));
    float4 sum[kQuads];
    sum_occurrences<kGrad>(group, lanes, plan, grad, now.begin, now.count, first_now, sum);
    sink.use(group, lanes, plan, now.number, now.place, fetched, sum);
  }
}

/// The sink of sums that are stored: vectors of an array, by place.
template <int kQuads>
struct StoringSink {
  float* out;

  struct Fetched {};
  __device__ std::int32_t place_of(const PlanView& /*plan*/, std::uint32_t unique) const {
    return static_cast<std::int32_t>(unique);
  }
  __device__ void fetch(const Group& /*group*/,
                        RowLanes /*lanes*/,
                        const PlanView& /*plan*/,
                        std::uint32_t /*unique*/,
                        std::int32_t /*place*/,
                        Fetched& /*fetched*/) const {}
  __device__ void use(const Group& group,
                      RowLanes lanes,
                      const PlanView& /*plan*/,
                      std::uint32_t /*unique*/,
                      std::int32_t place,
                      const Fetched& /*fetched*/,
                      const float4 (&sum)[kQuads]) const {
    if (place < 0) return;
#pragma unroll
    for (int k = 0; k < kQuads; ++k) {
      const int quad = group.lane + k * 32;
      if (quad < lanes.quads) {
        store_quad<FloatType::kFp32>(out, static_cast<std::int64_t>(place) * lanes.quads + quad,
                                     sum[k]);
      }
    }
  }
};

/// The same for keys that have places of their own.
template <int kQuads>
struct PlacingSink : StoringSink<kQuads> {
  const std::int32_t* places;  // of the keys; nullptr: their numbers

  __device__ std::int32_t place_of(const PlanView& /*plan*/, std::uint32_t unique) const {
    return places == nullptr ? static_cast<std::int32_t>(unique) : places[unique];
  }
};

/// The key of that number if it is one of a short segment that the sink takes.
template <class Sink>
__device__ Item short_segment(const PlanView& plan, const Sink& sink, std::uint32_t number) {
  if (number >= plan.counts->unique) return {0, 0, 0, -1};
  const std::uint32_t begin = plan.segments[number];
  const std::uint32_t count = plan.segments[number + 1] - begin;
  const std::int32_t place = count > kSumChunk ? -1 : sink.place_of(plan, number);
  return {begin, place < 0 ? 0 : count, number, place};
}

/// The last of `count` ascending numbers, of which the first is 0, that is not above x.
__device__ inline std::uint32_t last_not_above(const std::uint32_t* numbers,
                                               std::uint32_t count,
                                               std::int64_t x) {
  std::uint32_t found = 0, end = count;
  while (end - found > 1) {
    const std::uint32_t middle = (found + end) / 2;
    (numbers[middle] <= x ? found : end) = middle;
  }
  return found;
}

/// Chunk `number` of the long segments, if there are so many.
__device__ inline Item chunk(const PlanView& plan, std::int64_t number) {
  if (number >= plan.counts->chunks) return {0, 0, 0, -1};
  const std::uint32_t l = last_not_above(plan.long_chunks, plan.counts->longs, number);
  const std::uint32_t u = plan.long_unique[l];
  const std::int64_t begin = plan.segments[u] + (number - plan.long_chunks[l]) * kSumChunk;
  const std::int64_t left = plan.segments[u + 1] - begin;
  return {static_cast<std::uint32_t>(begin),
          static_cast<std::uint32_t>(left < kSumChunk ? left : kSumChunk),
          static_cast<std::uint32_t>(number), static_cast<std::int32_t>(number)};
}

/// Pass one. A warp takes a chunk of a long segment per group, which come first because they take
/// longest, or up to 32 consecutive keys.
template <FloatType kGrad, int kQuads, class Sink>
__global__ void __launch_bounds__(kThreads, kBlocks<kQuads>)
    reduce_segments(PlanView plan, RowLanes lanes, const void* grad, Sink sink) {
  const Group group(lanes.log2_lanes);
  const std::uint32_t groups = 32U >> lanes.log2_lanes;
  const std::uint32_t my_group = threadIdx.x % 32 >> lanes.log2_lanes;
  const std::uint32_t chunk_turns = (plan.counts->chunks + groups - 1) >> (5 - lanes.log2_lanes);
  const auto per_group =
      static_cast<std::uint32_t>(items_per_group(group, lanes.log2_lanes, plan.counts->unique));
  const std::uint32_t per_warp = per_group * groups;
  const std::uint32_t turns = chunk_turns + (plan.counts->unique + per_warp - 1) / per_warp;
  const auto num_warps = static_cast<std::uint32_t>(num_threads() / 32);
  for (auto turn = static_cast<std::uint32_t>(global_thread() / 32); turn < turns;
       turn += num_warps) {
    if (turn < chunk_turns) {
      const Item item = chunk(plan, turn * groups + my_group);
      const StoringSink<kQuads> chunks{plan.partial_sums};
      reduce_items<kGrad, kQuads>(group, lanes, plan, grad, item, 1, chunks);
    } else {
      const std::uint32_t first = (turn - chunk_turns) * per_warp;
      const auto lane = static_cast<std::uint32_t>(group.lane);
      const std::uint32_t mine =
          lane < per_group ? first + my_group * per_group + lane : plan.counts->unique;
      const Item item = short_segment(plan, sink, mine);
      const std::uint32_t left = plan.counts->unique - first;
      reduce_items<kGrad, kQuads>(group, lanes, plan, grad, item,
                                  static_cast<int>(left < per_group ? left : per_group), sink);
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
    const int quad = group.lane + k * 32;
    if (quad >= lanes.quads || begin >= end) continue;
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
    const std::uint32_t l = last_not_above(plan.long_groups, plan.counts->longs, g);
    const std::int64_t first = plan.long_chunks[l] + (g - plan.long_groups[l]) * kSumChunk;
    const std::int64_t chunks_end = plan.long_chunks[l + 1];
    const std::int64_t last = first + kSumChunk < chunks_end ? first + kSumChunk : chunks_end;
    float4 sum[kQuads] = {};
    add_vectors(group, lanes, plan.partial_sums, first, last, sum);
    StoringSink<kQuads>{plan.group_sums}.use(group, lanes, plan, 0, static_cast<std::int32_t>(g),
                                             {}, sum);
  }
}

/// Last pass: a long segment per group of lanes, from its chunks or groups to the sink.
template <int kQuads, class Sink>
__global__ void __launch_bounds__(kThreads, kBlocks<kQuads>)
    finish_long_segments(PlanView plan, RowLanes lanes, Sink sink) {
  const Group group(lanes.log2_lanes);
  const std::int64_t groups = 32 >> lanes.log2_lanes;
  const std::int64_t my_group = threadIdx.x % 32 >> lanes.log2_lanes;
  const std::int64_t num_longs = plan.counts->longs;
  for (std::int64_t first = global_thread() / 32 * groups; first < num_longs;
       first += num_threads() / 32 * groups) {
    const std::int64_t l = first + my_group;
    const std::uint32_t unique = l < num_longs ? plan.long_unique[l] : 0;
    const std::int32_t place = l < num_longs ? sink.place_of(plan, unique) : -1;
    typename Sink::Fetched fetched;
    sink.fetch(group, lanes, plan, unique, place, fetched);
    float4 sum[kQuads] = {};
    if (place >= 0) {
      const bool grouped = plan.long_groups[l + 1] != plan.long_groups[l];
      const std::uint32_t* bounds = grouped ? plan.long_groups : plan.long_chunks;
      add_vectors(group, lanes, grouped ? plan.group_sums : plan.partial_sums, bounds[l],
                  bounds[l + 1], sum);
    }
    sink.use(group, lanes, plan, unique, place, fetched, sum);
  }
}

/// backward_update of one optimizer (backward_update.h), each instantiated in its own source file.
template <RowOptimizerType kType>
void backward_update_of(const Grids& grids, const BackwardUpdate& operation, StreamRef stream);

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
  const RowLanes lanes = row_lanes(padded_dim, 1);
  const std::int64_t groups_per_block = kThreads >> lanes.log2_lanes;
  const std::int64_t max_chunks = 2 * plan.num_ids / kSumChunk;
  const std::int64_t max_groups = 2 * max_chunks / kSumChunk;
  with_quads_per_lane(lanes, [&](auto quads) {
    constexpr int kQuads = quads();
    const auto sink = make_sink(quads);
    using Sink = std::remove_const_t<decltype(sink)>;
    const auto reduce = [&](auto type) {
      launch(reduce_segments<type(), kQuads, Sink>,
             grids.grid_for(plan.num_ids + max_chunks, groups_per_block), stream, plan, lanes, grad,
             sink);
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
