#include <cuda_runtime.h>

#include "cuda/backend/heads.h"
#include "cuda/backend/lanes.h"
#include "cuda/backend/order_tags.h"
#include "cuda/backend/sets.h"

namespace satrap::backend {

namespace {

__device__ std::uint64_t tag_at(const PlanView& plan, std::int64_t j) {
  return plan.id_tags[plan.positions[j]];
}

/// Whether no other tag of its prefix comes before occurrence j and those equal to it, all of
/// `tag`.
__device__ bool is_first_of_prefix(const Group& warp,
                                   const PlanView& plan,
                                   std::int64_t j,
                                   std::uint64_t tag) {
  for (std::int64_t end = j; end > 0; end -= 32) {
    const std::int64_t i = end - 1 - warp.lane;
    const std::uint64_t before = i >= 0 ? tag_at(plan, i) : ~tag;
    const std::uint32_t others = __ballot_sync(kAllLanes, before != tag);
    if (others != 0) return prefix_of(warp.shuffle(before, lowest(others))) != prefix_of(tag);
  }
  return true;
}

/// The tags in the order of the sort. Marks in mixed_runs the first occurrence of a prefix that is
/// followed by another tag of it.
// Here and below, as many blocks as leave enough registers not to spill.
__global__ void __launch_bounds__(kThreads, 12) gather_tags(PlanView plan) {
  const Group warp(5);
  const std::int64_t turns = (plan.num_ids + 31) / 32;
  for (std::int64_t t = global_thread() / 32; t < turns; t += num_threads() / 32) {
    const std::int64_t j = t * 32 + warp.lane, last = plan.num_ids - 1;
    const std::uint64_t tag = tag_at(plan, j < last ? j : last);
    if (j <= last) plan.sorted_tags[j] = tag;
    std::uint64_t next = warp.shuffle(tag, (warp.lane + 1) % 32);
    if (warp.lane == 31) next = j < last ? tag_at(plan, j + 1) : tag;
    const bool is_mixed = j < last && tag != next && prefix_of(tag) == prefix_of(next);
    std::uint32_t firsts = 0;
    for (std::uint32_t mixed = __ballot_sync(kAllLanes, is_mixed); mixed != 0; mixed &= mixed - 1) {
      const int lane = lowest(mixed);
      if (is_first_of_prefix(warp, plan, t * 32 + lane, warp.shuffle(tag, lane))) {
        firsts |= 1U << lane;
      }
    }
    if (warp.lane == 0) plan.mixed_runs[t] = firsts;
  }
}

/// Puts the occurrences of a prefix in order: tag by tag, positions in their order. `j` is the last
/// of the first tag.
__device__ void order_run(const Group& warp, const PlanView& plan, std::int64_t j) {
  const std::uint64_t first_tag = plan.sorted_tags[j];
  std::int64_t begin = j, end = j + 1;
  for (bool goes_on = true; goes_on;) {
    const std::int64_t i = begin - 1 - warp.lane;
    const bool belongs = i >= 0 && plan.sorted_tags[i] == first_tag;
    const std::uint32_t others = __ballot_sync(kAllLanes, !belongs);
    begin -= others != 0 ? lowest(others) : 32;
    goes_on = others == 0;
  }
  for (bool goes_on = true; goes_on;) {
    const std::int64_t i = end + warp.lane;
    const bool belongs = i < plan.num_ids && prefix_of(plan.sorted_tags[i]) == prefix_of(first_tag);
    const std::uint32_t others = __ballot_sync(kAllLanes, !belongs);
    end += others != 0 ? lowest(others) : 32;
    goes_on = others == 0;
  }
  // Lanes read no copies but their own.
  for (std::int64_t i = begin + warp.lane; i < end; i += 32) {
    plan.scratch_positions[i] = plan.positions[i];
  }
  std::uint64_t from = 0;  // tags below are in their place
  for (std::int64_t at = begin; at < end; ++from) {
    std::uint64_t least = ~std::uint64_t{0};
    for (std::int64_t i = begin + warp.lane; i < end; i += 32) {
      const std::uint64_t tag = plan.id_tags[plan.scratch_positions[i]];
      if (tag >= from && tag < least) least = tag;
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      const std::uint64_t other = warp.shuffle(least, warp.lane ^ distance);
      if (other < least) least = other;
    }
    for (std::int64_t first = begin; first < end; first += 32) {
      const std::int64_t i = first + warp.lane;
      const std::uint32_t position = i < end ? plan.scratch_positions[i] : 0;
      const bool is_next = i < end && plan.id_tags[position] == least;
      const std::uint32_t nexts = __ballot_sync(kAllLanes, is_next);
      if (is_next) {
        const std::int64_t place = at + __popc(nexts & ((1U << warp.lane) - 1U));
        plan.positions[place] = position;
        plan.sorted_tags[place] = least;
      }
      at += __popc(nexts);
    }
    from = least;
  }
}

/// Puts the mixed runs in order, a warp for each.
__global__ void __launch_bounds__(kThreads, 8) order_mixed_runs(PlanView plan) {
  const Group warp(5);
  const std::int64_t words = (plan.num_ids + 31) / 32;
  for (std::int64_t t = global_thread() / 32; t * 32 < words; t += num_threads() / 32) {
    const std::int64_t w = t * 32 + warp.lane;
    const std::uint32_t mine = w < words ? plan.mixed_runs[w] : 0;
    for (std::uint32_t lanes = __ballot_sync(kAllLanes, mine != 0); lanes != 0;
         lanes &= lanes - 1) {
      const std::int64_t word = t * 32 + lowest(lanes);
      for (std::uint32_t runs = warp.shuffle(mine, lowest(lanes)); runs != 0; runs &= runs - 1) {
        order_run(warp, plan, word * 32 + lowest(runs));
      }
    }
  }
}

}  // namespace

void order_tags(const PlanView& plan, const Grids& grids, StreamRef stream) {
  const std::int64_t n = plan.num_ids;
  launch(gather_tags, grids.grid_for(n, kThreads), stream, plan);
  launch(order_mixed_runs, grids.grid_for((n + 31) / 32, kThreads), stream, plan);
}

}  // namespace satrap::backend
