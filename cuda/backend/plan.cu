#include <cuda_runtime.h>

#include "cuda/backend/cuda_device.h"
#include "cuda/backend/lanes.h"
#include "cuda/backend/prims.h"
#include "cuda/backend/sets.h"
#include "src/backend/arguments.h"

namespace satrap::backend {

namespace {

constexpr std::uint64_t kUnusedTag = ~std::uint64_t{0};  // sorts after all tags
/// The sort looks at the top bits of tags only, in which two keys of a batch are rarely equal: of a
/// million keys, about one pair. Each 8 bits are a pass over all ids.
constexpr int kSortedBits = 40;
constexpr int kUnsortedBits = 64 - kSortedBits;

/// The factor of a bag's ids; weights are summed in the order of the bag.
__device__ float scale_of(Pooling pooling,
                          const float* weights,
                          std::int64_t begin,
                          std::int64_t end) {
  if (pooling != Pooling::kMean && pooling != Pooling::kSqrtN) return 1.0F;
  float sum = weights == nullptr ? static_cast<float>(end - begin) : 0.0F;
  if (weights != nullptr) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float w = weights[i];
      sum += pooling == Pooling::kMean ? w : w * w;
    }
  }
  const float divisor = pooling == Pooling::kMean ? sum : sqrtf(sum);
  return divisor == 0.0F ? 0.0F : 1.0F / divisor;
}

/// A bag as its ids need it: where they begin and end, how many are used, the place of their vector
/// and how far apart the vectors of a sequence are, in quads, and their factor.
struct Bag {
  std::uint32_t begin, end, num_used, target, step;
  float scale;
};

__device__ Bag locate_bag(const Bags& bags, std::int64_t padded_dim, std::int64_t number) {
  const std::int64_t f = number / bags.num_examples;
  const std::int64_t row = number - f * bags.num_examples;
  const BagFeature feature = bags.features[f];
  const std::int64_t begin = bags.offsets[number];
  const std::int64_t end = bags.offsets[number + 1];
  const auto target = static_cast<std::uint32_t>((row * bags.row_stride + feature.column) / 4);
  const bool sequence = feature.pooling == Pooling::kSequence;
  return {static_cast<std::uint32_t>(begin),
          static_cast<std::uint32_t>(end),
          sequence ? static_cast<std::uint32_t>(feature.vectors_per_row) : 0xFFFFFFFFU,
          target,
          sequence ? static_cast<std::uint32_t>(padded_dim / 4) : 0,
          scale_of(feature.pooling, bags.weights, begin, end)};
}

/// Per id: its tag, its vector in the output, its factor there. A warp takes 32 bags, one located
/// by each lane, and their ids 32 at a time. Where bags are few several warps share the ids, unless
/// each would have to sum the bags' weights.
__global__ void __launch_bounds__(kThreads)
    describe_ids(Bags bags, std::int64_t padded_dim, PlanView plan) {
  const Group warp(5);
  const std::int64_t num_bags = bags.num_features * bags.num_examples;
  const std::int64_t num_warps = num_threads() / 32, turns = (num_bags + 31) / 32;
  const std::int64_t sharing = num_warps > turns && bags.weights == nullptr ? num_warps / turns : 1;
  for (std::int64_t t = global_thread() / 32; t < turns * sharing; t += num_warps) {
    const std::int64_t turn = t / sharing;
    const std::int64_t number = turn * 32 + warp.lane;
    const Bag bag = locate_bag(bags, padded_dim, number < num_bags ? number : num_bags - 1);
    const std::uint32_t end = warp.shuffle(bag.end, 31);
    const auto share = static_cast<std::uint32_t>(t - turn * sharing);
    const auto step_of_ids = static_cast<std::uint32_t>(sharing) * 32;
    for (std::uint32_t i = warp.shuffle(bag.begin, 0) + share * 32; i < end; i += step_of_ids) {
      const std::uint32_t id = i + static_cast<std::uint32_t>(warp.lane);
      int b = 0;  // its bag: the first that ends after it
      for (int step = 16; step > 0; step /= 2) {
        if (warp.shuffle(bag.end, b + step - 1) <= id) b += step;
      }
      const std::uint32_t within = id - warp.shuffle(bag.begin, b);
      const bool used = within < warp.shuffle(bag.num_used, b);
      const std::uint32_t target = warp.shuffle(bag.target, b) + within * warp.shuffle(bag.step, b);
      const float scale = warp.shuffle(bag.scale, b);
      if (id >= end) continue;
      plan.id_tags[id] = used ? tag_of(bags.keys[id]) : kUnusedTag;
      plan.id_targets[id] = used ? target : kNoTarget;
      plan.coefficients[id] =
          used ? (bags.weights == nullptr ? scale : bags.weights[id] * scale) : 0.0F;
      plan.scratch_positions[id] = id;
    }
  }
}

__device__ bool have_equal_prefix(std::uint64_t x, std::uint64_t y) {
  return (x ^ y) >> kUnsortedBits == 0;
}

/// Finds the runs of equal prefix with different tags: counts2 becomes [begin, end) of the run at
/// its first occurrence whose tag is not that of the next, and empty elsewhere.
__global__ void __launch_bounds__(kThreads) find_mixed_runs(PlanView plan) {
  for (std::int64_t j = global_thread(); j < plan.num_ids; j += num_threads()) {
    const std::uint64_t tag = plan.sorted_tags[j];
    const std::uint64_t next = j + 1 < plan.num_ids ? plan.sorted_tags[j + 1] : tag;
    Count2 run{0, 0};
    if (tag != next && have_equal_prefix(tag, next)) {
      std::int64_t begin = j, end = j + 2;
      while (begin > 0 && plan.sorted_tags[begin - 1] == tag) --begin;
      const bool first = begin == 0 || !have_equal_prefix(plan.sorted_tags[begin - 1], tag);
      while (first && end < plan.num_ids && have_equal_prefix(plan.sorted_tags[end], tag)) ++end;
      if (first) run = {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
    }
    plan.counts2[j] = run;
  }
}

/// Puts each of these runs in order, a thread per run: tag by tag, positions in their order.
__global__ void __launch_bounds__(kThreads) order_mixed_runs(PlanView plan) {
  for (std::int64_t j = global_thread(); j < plan.num_ids; j += num_threads()) {
    const auto [begin, end] = plan.counts2[j];
    for (std::uint32_t i = begin; i < end; ++i) plan.scratch_positions[i] = plan.positions[i];
    std::uint64_t from = 0;  // tags below are in their place
    for (std::uint32_t at = begin; at < end; ++from) {
      std::uint64_t least = ~std::uint64_t{0};
      for (std::uint32_t i = begin; i < end; ++i) {
        const std::uint64_t tag = plan.id_tags[plan.scratch_positions[i]];
        if (tag >= from && tag < least) least = tag;
      }
      for (std::uint32_t i = begin; i < end; ++i) {
        const std::uint32_t position = plan.scratch_positions[i];
        if (plan.id_tags[position] != least) continue;
        plan.positions[at] = position;
        plan.sorted_tags[at] = least;
        ++at;
      }
      from = least;
    }
  }
}

/// Marks the first occurrence of every key, and of every set.
__global__ void __launch_bounds__(kThreads) mark_heads(PlanView plan, std::int64_t num_sets) {
  for (std::int64_t j = global_thread(); j < plan.num_ids; j += num_threads()) {
    const std::uint64_t tag = plan.sorted_tags[j];
    const bool first = j == 0;
    const std::uint64_t before = first ? 0 : plan.sorted_tags[j - 1];
    const bool head = tag != kUnusedTag && (first || tag != before);
    const bool set_head = head && (first || set_of(tag, num_sets) != set_of(before, num_sets));
    plan.counts2[j] = {head ? 1U : 0U, set_head ? 1U : 0U};
  }
}

/// counts2 has become the number of keys and of sets up to each occurrence.
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
    plan.occurrence_targets[j] = plan.id_targets[position];
    plan.occurrence_coefficients[j] = plan.coefficients[position];
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

}  // namespace

void CudaDevice::build_plan(const Bags& bags,
                            std::int64_t num_sets,
                            std::int64_t padded_dim,
                            const PlanView& plan,
                            StreamRef stream) {
  const std::int64_t n = plan.num_ids;
  check_arguments(bags, num_sets, plan);
  fill(plan.counts, 0, sizeof(PlanCounts), stream);
  if (n == 0) return;
  const std::int64_t num_bags = bags.num_features * bags.num_examples;
  launch(describe_ids, grids_.grid_for(n + num_bags, kThreads), stream, bags, padded_dim, plan);
  sort_pairs(plan.prims_scratch, plan.prims_scratch_bytes, plan.id_tags, plan.sorted_tags,
             plan.scratch_positions, plan.positions, n, kUnsortedBits, stream);
  launch(find_mixed_runs, grids_.grid_for(n, kThreads), stream, plan);
  launch(order_mixed_runs, grids_.grid_for(n, kThreads), stream, plan);
  launch(mark_heads, grids_.grid_for(n, kThreads), stream, plan, num_sets);
  inclusive_sum(plan.prims_scratch, plan.prims_scratch_bytes, plan.counts2, n, stream);
  launch(number_keys, grids_.grid_for(n, kThreads), stream, plan);
  const std::int64_t num_items = (n + kSumChunk - 1) / kSumChunk;
  launch(find_long_segments, grids_.grid_for(num_items, kThreads), stream, plan, num_items);
  inclusive_sum(plan.prims_scratch, plan.prims_scratch_bytes, plan.counts4, num_items, stream);
  launch(list_long_segments, grids_.grid_for(num_items, kThreads), stream, plan, num_items);
}

}  // namespace satrap::backend
