#include <cuda_runtime.h>

#include "cuda/backend/cuda_device.h"
#include "cuda/backend/heads.h"
#include "cuda/backend/lanes.h"
#include "cuda/backend/order_tags.h"
#include "cuda/backend/prims.h"
#include "cuda/backend/sets.h"
#include "src/backend/arguments.h"

namespace satrap::backend {

namespace {

constexpr float kNoTerm = -0.0F;  // leaves every sum as it is

__device__ bool is_scaled(Pooling pooling) {
  return pooling == Pooling::kMean || pooling == Pooling::kSqrtN;
}

/// The term of an id in the sum of its bag's weights.
__device__ float term_of(Pooling pooling, float weight) {
  return pooling == Pooling::kMean ? weight : weight * weight;
}

/// The factor of a bag's ids, from its sum of weights.
__device__ float scale_of(Pooling pooling, float sum) {
  const float divisor = pooling == Pooling::kMean ? sum : sqrtf(sum);
  return divisor == 0.0F ? 0.0F : 1.0F / divisor;
}

/// Weights are summed in the order of the bag.
__device__ float scale_of(Pooling pooling,
                          const float* weights,
                          std::int64_t begin,
                          std::int64_t end) {
  if (!is_scaled(pooling)) return 1.0F;
  float sum = weights == nullptr ? static_cast<float>(end - begin) : 0.0F;
  if (weights != nullptr) {
    for (std::int64_t i = begin; i < end; ++i) sum += term_of(pooling, weights[i]);
  }
  return scale_of(pooling, sum);
}

/// A bag as its ids need it: where they begin and end, how many are used, the place of their vector
/// and how far apart the vectors of a sequence are, in quads, and their factor. A long bag has
/// none.
struct Bag {
  std::uint32_t begin, end, num_used, target, step;
  float scale;
  bool is_long;
};

template <bool kHasLongBags>
__device__ Bag locate_bag(const Bags& bags, std::int64_t padded_dim, std::int64_t number) {
  const std::int64_t f = number / bags.num_examples;
  const std::int64_t row = number - f * bags.num_examples;
  const BagFeature feature = bags.features[f];
  const std::int64_t begin = bags.offsets[number];
  const std::int64_t end = bags.offsets[number + 1];
  const auto target = static_cast<std::uint32_t>((row * bags.row_stride + feature.column) / 4);
  const bool sequence = feature.pooling == Pooling::kSequence;
  const bool is_long = kHasLongBags && end - begin > kMaxShortBag;
  return {static_cast<std::uint32_t>(begin),
          static_cast<std::uint32_t>(end),
          sequence ? static_cast<std::uint32_t>(feature.vectors_per_row) : 0xFFFFFFFFU,
          target,
          sequence ? static_cast<std::uint32_t>(padded_dim / 4) : 0,
          is_long ? 0.0F : scale_of(feature.pooling, bags.weights, begin, end),
          is_long};
}

/// An id of a bag: its tag, its vector in the output, its factor there.
__device__ void describe(const Bags& bags,
                         const PlanView& plan,
                         std::uint32_t id,
                         bool used,
                         std::uint32_t target,
                         float scale) {
  const std::uint64_t tag = used ? tag_of(bags.keys[id]) : kUnusedTag;
  const float factor = used ? (bags.weights == nullptr ? scale : bags.weights[id] * scale) : 0.0F;
  plan.id_tags[id] = tag;
  plan.id_prefixes[id] = prefix_of(tag);
  plan.id_places[id] = {used ? target : kNoTarget, factor};
  plan.coefficients[id] = factor;
  plan.scratch_positions[id] = id;
}

/// Describes the ids [begin, end) of the bags that the lanes of a warp hold.
__device__ void describe_run(const Group& warp,
                             const Bags& bags,
                             const PlanView& plan,
                             const Bag& bag,
                             std::uint32_t begin,
                             std::uint32_t end,
                             std::uint32_t step_of_ids) {
  for (std::uint32_t i = begin; i < end; i += step_of_ids) {
    const std::uint32_t id = i + static_cast<std::uint32_t>(warp.lane);
    int b = 0;  // its bag: the first that ends after it
    for (int step = 16; step > 0; step /= 2) {
      if (warp.shuffle(bag.end, b + step - 1) <= id) b += step;
    }
    const std::uint32_t within = id - warp.shuffle(bag.begin, b);
    const bool used = within < warp.shuffle(bag.num_used, b);
    const std::uint32_t target = warp.shuffle(bag.target, b) + within * warp.shuffle(bag.step, b);
    const float scale = warp.shuffle(bag.scale, b);
    if (id < end) describe(bags, plan, id, used, target, scale);
  }
}

/// A warp takes 32 bags, one located by each lane, and their ids 32 at a time, without those of
/// long bags. Where bags are few several warps share the ids, unless each would have to sum the
/// bags' weights.
template <bool kHasLongBags>
__global__ void __launch_bounds__(kThreads, kHasLongBags ? 12 : 0)  // enough registers not to spill
    describe_ids(Bags bags, std::int64_t padded_dim, PlanView plan) {
  const Group warp(5);
  const std::int64_t num_bags = bags.num_features * bags.num_examples;
  const std::int64_t num_warps = num_threads() / 32, turns = (num_bags + 31) / 32;
  const std::int64_t sharing = num_warps > turns && bags.weights == nullptr ? num_warps / turns : 1;
  for (std::int64_t t = global_thread() / 32; t < turns * sharing; t += num_warps) {
    const std::int64_t turn = t / sharing;
    const std::int64_t number = turn * 32 + warp.lane;
    const Bag bag =
        locate_bag<kHasLongBags>(bags, padded_dim, number < num_bags ? number : num_bags - 1);
    const auto share = static_cast<std::uint32_t>(t - turn * sharing);
    const auto step_of_ids = static_cast<std::uint32_t>(sharing) * 32;
    std::uint32_t begin = warp.shuffle(bag.begin, 0) + share * 32;
    if constexpr (kHasLongBags) {
      for (std::uint32_t longs = __ballot_sync(kAllLanes, bag.is_long); longs != 0;
           longs &= longs - 1) {
        const std::uint32_t end = warp.shuffle(bag.begin, lowest(longs));
        describe_run(warp, bags, plan, bag, begin, end, step_of_ids);
        begin = warp.shuffle(bag.end, lowest(longs)) + share * 32;
      }
    }
    describe_run(warp, bags, plan, bag, begin, warp.shuffle(bag.end, 31), step_of_ids);
  }
}

/// As scale_of, by a warp: 256 weights are on their way while those before them are added.
__device__ float scale_of_long_bag(const Group& warp,
                                   Pooling pooling,
                                   const float* weights,
                                   std::uint32_t begin,
                                   std::uint32_t end) {
  if (weights == nullptr || !is_scaled(pooling)) return scale_of(pooling, nullptr, begin, end);
  constexpr int kAhead = 8;
  float ahead[kAhead];
  const auto load = [&](std::uint32_t first) {
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const std::uint32_t id = first + static_cast<std::uint32_t>(k * 32 + warp.lane);
      ahead[k] = id < end ? term_of(pooling, weights[id]) : kNoTerm;
    }
  };
  load(begin);
  float sum = 0.0F;
#pragma unroll 1
  for (std::uint32_t first = begin; first < end; first += kAhead * 32) {
    float now[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) now[k] = ahead[k];
    load(first + kAhead * 32);
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
#pragma unroll
      for (int lane = 0; lane < 32; ++lane) sum += warp.shuffle(now[k], lane);
    }
  }
  return scale_of(pooling, sum);
}

/// Describes the ids of long bags. num_warps warps share a bag; each sums all of its weights.
__global__ void __launch_bounds__(kThreads)
    describe_long_bags(Bags bags, std::int64_t padded_dim, PlanView plan, std::int64_t num_warps) {
  const Group warp(5);
  const std::int64_t items = bags.num_long_bags * num_warps;
  for (std::int64_t item = global_thread() / 32; item < items; item += num_threads() / 32) {
    const std::int64_t l = item / num_warps;
    const std::int64_t number = bags.long_bags[l];
    const Bag bag = locate_bag<true>(bags, padded_dim, number);
    const Pooling pooling = bags.features[number / bags.num_examples].pooling;
    const float scale = scale_of_long_bag(warp, pooling, bags.weights, bag.begin, bag.end);
    const auto share = static_cast<std::uint32_t>(item - l * num_warps);
#pragma unroll 4
    for (std::uint32_t id = bag.begin + share * 32 + static_cast<std::uint32_t>(warp.lane);
         id < bag.end; id += static_cast<std::uint32_t>(num_warps) * 32) {
      const std::uint32_t within = id - bag.begin;
      describe(bags, plan, id, within < bag.num_used, bag.target + within * bag.step, scale);
    }
  }
}

/// counts2 has the number of keys and of sets up to each occurrence.
__global__ void __launch_bounds__(kThreads) number_keys(PlanView plan) {
  for (std::int64_t j = global_thread(); j < plan.num_ids; j += num_threads()) {
    const std::uint64_t tag = plan.sorted_tags[j];
    const std::uint32_t position = plan.positions[j];
    if (tag == kUnusedTag) {
      plan.unique_of[position] = -1;
      continue;
    }
    const Count2 count = plan.counts2[j];
    const Count2 before = j == 0 ? Count2{0, 0} : plan.counts2[j - 1];
    const auto here = static_cast<std::uint32_t>(j);
    plan.unique_of[position] = static_cast<std::int32_t>(count.a - 1);
    const IdPlace place = plan.id_places[position];
    plan.occurrence_targets[j] = place.target;
    plan.occurrence_coefficients[j] = place.coefficient;
    if (count.a != before.a) {
      plan.unique_tags[count.a - 1] = tag;
      plan.segments[count.a - 1] = here;
    }
    if (count.b != before.b) plan.set_runs[count.b - 1] = count.a - 1;
    const bool last = j + 1 == plan.num_ids || plan.sorted_tags[j + 1] == kUnusedTag;
    if (last) {
      plan.segments[count.a] = here + 1;
      plan.set_runs[count.b] = count.a;
      plan.counts->unique = count.a;
      plan.counts->set_runs = count.b;
      plan.counts->occurrences = here + 1;
    }
  }
}

/// A segment longer than kSumChunk has an occurrence whose number is a multiple of kSumChunk; the
/// first of these represents it. So the search for long segments reads only every kSumChunk-th
/// occurrence.
struct LongSegment {
  std::uint32_t unique, chunks, groups;  // chunks == 0: none begins here
};

__device__ LongSegment long_segment_at(const PlanView& plan, std::int64_t item) {
  const std::int64_t j = item * kSumChunk;
  if (j >= plan.counts->occurrences) return {0, 0, 0};
  const std::uint32_t u = plan.counts2[j].a - 1;
  const std::int64_t begin = plan.segments[u];
  const std::int64_t length = plan.segments[u + 1] - begin;
  if (length <= kSumChunk || j - begin >= kSumChunk) return {0, 0, 0};
  const std::int64_t chunks = (length + kSumChunk - 1) / kSumChunk;
  const std::int64_t groups = chunks > kSumChunk ? (chunks + kSumChunk - 1) / kSumChunk : 0;
  return {u, static_cast<std::uint32_t>(chunks), static_cast<std::uint32_t>(groups)};
}

__global__ void __launch_bounds__(kThreads)
    find_long_segments(PlanView plan, std::int64_t num_items) {
  for (std::int64_t item = global_thread(); item < num_items; item += num_threads()) {
    const LongSegment s = long_segment_at(plan, item);
    plan.counts4[item] = {s.chunks != 0 ? 1U : 0U, s.chunks, s.groups, 0};
  }
}

__global__ void __launch_bounds__(kThreads)
    list_long_segments(PlanView plan, std::int64_t num_items) {
  for (std::int64_t item = global_thread(); item < num_items; item += num_threads()) {
    const LongSegment s = long_segment_at(plan, item);
    const Count4 through = plan.counts4[item];
    if (s.chunks != 0) {
      plan.long_unique[through.a - 1] = s.unique;
      plan.long_chunks[through.a - 1] = through.b - s.chunks;
      plan.long_groups[through.a - 1] = through.c - s.groups;
    }
    if (item + 1 == num_items) {
      plan.long_chunks[through.a] = through.b;
      plan.long_groups[through.a] = through.c;
      plan.counts->longs = through.a;
      plan.counts->chunks = through.b;
      plan.counts->groups = through.c;
    }
  }
}

/// As many as share the ids of a bag without leaving others idle.
std::int64_t warps_per_long_bag(const Grids& grids, const Bags& bags) {
  const std::int64_t all = std::int64_t{grids.grid_for(bags.num_ids, 1)} * kWarps;
  return std::clamp<std::int64_t>(all / bags.num_long_bags, 1, 64);
}

}  // namespace

void CudaDevice::build_plan(const BuildPlan& operation, StreamRef stream) {
  check_arguments(operation);
  const auto& [bags, num_sets, padded_dim, plan] = operation;
  const std::int64_t n = plan.num_ids;
  fill(plan.counts, 0, sizeof(PlanCounts), stream);
  if (n == 0) return;
  const std::int64_t num_bags = bags.num_features * bags.num_examples;
  const bool has_long_bags = bags.num_long_bags > 0;
  launch(has_long_bags ? describe_ids<true> : describe_ids<false>,
         grids_.grid_for(n + num_bags, kThreads), stream, bags, padded_dim, plan);
  if (has_long_bags) {
    const std::int64_t num_warps = warps_per_long_bag(grids_, bags);
    launch(describe_long_bags, grids_.grid_for(bags.num_long_bags * num_warps, kWarps), stream,
           bags, padded_dim, plan, num_warps);
  }
  sort_pairs(plan.prims_scratch, plan.prims_scratch_bytes, plan.id_prefixes, plan.sorted_prefixes,
             plan.scratch_positions, plan.positions, n, stream);
  order_tags(plan, grids_, stream);
  count_heads(plan.prims_scratch, plan.prims_scratch_bytes, plan.sorted_tags, num_sets,
              plan.counts2, n, stream);
  launch(number_keys, grids_.grid_for(n, kThreads), stream, plan);
  const std::int64_t num_items = (n + kSumChunk - 1) / kSumChunk;
  launch(find_long_segments, grids_.grid_for(num_items, kThreads), stream, plan, num_items);
  inclusive_sum(plan.prims_scratch, plan.prims_scratch_bytes, plan.counts4, num_items, stream);
  launch(list_long_segments, grids_.grid_for(num_items, kThreads), stream, plan, num_items);
}

}  // namespace satrap::backend
