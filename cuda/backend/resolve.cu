#include <cuda_runtime.h>

#include "cuda/backend/cuda_device.h"
#include "cuda/backend/lanes.h"
#include "cuda/backend/prims.h"
#include "cuda/backend/sets.h"
#include "src/backend/arguments.h"
#include "src/backend/eviction.h"

namespace satrap::backend {

namespace {

// Sets per warp and turn: a trade-off of the number of tile counts to sum and latency to hide.
constexpr std::int64_t kTileRuns = 8;

__device__ std::uint32_t occurrences_of(const PlanView& plan, std::uint32_t unique) {
  return plan.segments[unique + 1] - plan.segments[unique];
}

__device__ std::uint32_t add_occurrences(std::uint32_t frequency, std::uint32_t occurrences) {
  const std::uint32_t room = 0xFFFFFFFFU - frequency;
  return frequency + (occurrences < room ? occurrences : room);
}

/// The next use of key `unique` of the batch; 0: none is known.
__device__ std::uint32_t next_use_of(const ResolveArguments& arguments, std::uint32_t unique) {
  return unique < arguments.num_next_uses ? arguments.next_uses[unique] : 0;
}

/// Pins a row for the batch. `last` and `frequency`: when it was needed before, and how often.
__device__ void pin(const CacheView& cache,
                    const PlanView& plan,
                    const ResolveArguments& arguments,
                    std::int64_t slot,
                    std::uint32_t unique,
                    std::uint32_t last,
                    std::uint32_t frequency) {
  cache.last_needed[slot] = arguments.batch;
  if (cache.policy == EvictionPolicy::kLru) return;
  cache.frequency[slot] =
      add_occurrences(aged(cache.policy, frequency, last, arguments), occurrences_of(plan, unique));
  if (cache.policy == EvictionPolicy::kLookahead) {
    cache.next_use[slot] = next_use_of(arguments, unique);
  }
}

/// The bookkeeping of one set, a way per lane of the warp that owns it.
struct Set {
  std::int64_t slot;  // of this lane's way
  std::uint8_t digest;
  std::uint32_t last_needed, score;

  __device__ Set(const CacheView& cache, const ResolveArguments& arguments, std::uint64_t number)
      : slot(static_cast<std::int64_t>(number) * kWays + lane_of_warp()),
        digest(cache.digests[slot]),
        last_needed(cache.last_needed[slot]),
        score(cache.policy == EvictionPolicy::kLru ? 0
                                                   : score_of(cache.policy,
                                                              cache.frequency[slot],
                                                              last_needed,
                                                              cache.next_use[slot],
                                                              arguments)) {}

  /// The way for an admitted row: an empty one, else the unpinned one that the policy puts first,
  /// else -1.
  __device__ int victim(EvictionPolicy policy, std::uint32_t completed) const {
    const std::uint32_t empty = __ballot_sync(kAllLanes, digest == 0);
    if (empty != 0) return lowest(empty);
    std::uint32_t candidates = __ballot_sync(kAllLanes, last_needed <= completed);
    if (candidates == 0) return -1;
    const bool candidate = last_needed <= completed;
    if (policy != EvictionPolicy::kLru) {
      const std::uint32_t least = __reduce_min_sync(kAllLanes, candidate ? score : 0xFFFFFFFFU);
      candidates = __ballot_sync(kAllLanes, candidate && score == least);
    }
    const bool left = (candidates >> lane_of_warp() & 1U) != 0;
    const std::uint32_t oldest = __reduce_min_sync(kAllLanes, left ? last_needed : 0xFFFFFFFFU);
    return lowest(__ballot_sync(kAllLanes, left && last_needed == oldest));
  }
};

/// The overflow row of an earlier batch that holds the tag, which this batch needs too; or -1.
__device__ std::int32_t find_shared(const ResolveArguments& arguments, std::uint64_t tag) {
  std::int64_t first = 0;  // that is not below the tag
  for (std::int64_t end = arguments.num_shared; first < end;) {
    const std::int64_t middle = (first + end) / 2;
    if (arguments.shared[middle].tag < tag) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  if (first == arguments.num_shared || arguments.shared[first].tag != tag) return -1;
  arguments.shared[first].is_needed = 1;
  return arguments.shared[first].slot;
}

/// Looks all keys up, one per thread, and pins the rows found. No two keys have the same slot, so
/// no two threads meet.
__global__ void __launch_bounds__(kThreads)
    probe_keys(CacheView cache, PlanView plan, ResolveArguments arguments) {
  const std::int64_t num_unique = plan.counts->unique;
  for (std::int64_t u = global_thread(); u < num_unique; u += num_threads()) {
    const std::uint64_t tag = plan.unique_tags[u];
    const std::int32_t slot = find(cache, tag);
    plan.slots[u] = slot < 0 ? find_shared(arguments, tag) : slot;
    if (slot < 0) continue;
    const bool counts = cache.policy != EvictionPolicy::kLru;
    pin(cache, plan, arguments, slot, static_cast<std::uint32_t>(u),
        counts ? cache.last_needed[slot] : 0, counts ? cache.frequency[slot] : 0);
  }
}

/// The number of keys [begin, end) that have no slot.
__device__ std::uint32_t count_misses(const PlanView& plan,
                                      std::uint32_t begin,
                                      std::uint32_t end) {
  std::uint32_t misses = 0;
  for (std::uint32_t first = begin; first < end; first += 32) {
    const std::uint32_t mine = first + threadIdx.x % 32;
    misses += static_cast<std::uint32_t>(
        __popc(__ballot_sync(kAllLanes, mine < end && plan.slots[mine] < 0)));
  }
  return misses;
}

/// Gives each miss of keys [begin, end) a way, while there are any, and records the result at
/// misses.record_*[at ...]. `tile` counts the tile's misses, writebacks and overflows.
__device__ void admit(const CacheView& cache,
                      const PlanView& plan,
                      const ResolveArguments& arguments,
                      const MissView& misses,
                      Set& set,
                      std::uint32_t begin,
                      std::uint32_t end,
                      std::uint32_t at,
                      Count4& tile) {
  const int lane = lane_of_warp();
  for (std::uint32_t first = begin; first < end; first += 32) {
    const std::uint32_t mine = first + threadIdx.x % 32;
    const std::uint64_t my_tag = mine < end ? plan.unique_tags[mine] : 0;
    std::uint32_t missing = __ballot_sync(kAllLanes, mine < end && plan.slots[mine] < 0);
    for (; missing != 0; missing &= missing - 1) {
      const int k = lowest(missing);
      const std::uint32_t unique = first + static_cast<std::uint32_t>(k);
      const std::uint64_t tag = __shfl_sync(kAllLanes, my_tag, k);
      const int way = set.victim(cache.policy, arguments.completed);
      const std::uint32_t record = at + tile.a;
      bool saves = false;
      if (way == lane) {
        saves = set.digest != 0 && cache.dirty[set.slot] != kClean;
        misses.record_unique[record] = unique;
        misses.record_slot[record] = static_cast<std::int32_t>(set.slot);
        misses.record_ordinal[record] = saves ? static_cast<std::int32_t>(tile.b) : -1;
        if (saves) misses.record_victim[record] = cache.tags[set.slot];
        cache.tags[set.slot] = tag;
        cache.dirty[set.slot] = kClean;
        set.digest = digest_of(tag);
        cache.digests[set.slot] = set.digest;
        set.last_needed = arguments.batch;
        pin(cache, plan, arguments, set.slot, unique, 0, 0);
      } else if (way < 0 && lane == 0) {
        misses.record_unique[record] = unique;
        misses.record_slot[record] = -1;
        misses.record_ordinal[record] = static_cast<std::int32_t>(tile.c);
      }
      ++tile.a;
      tile.b += __any_sync(kAllLanes, saves) != 0 ? 1 : 0;
      tile.c += way < 0 ? 1 : 0;
    }
  }
}

/// One warp per tile of kTileRuns sets that occur in the batch; admits what probe_keys has not
/// found.
__global__ void __launch_bounds__(kThreads, 8)
    resolve_sets(CacheView cache, PlanView plan, ResolveArguments arguments, MissView misses) {
  const std::int64_t num_runs = plan.counts->set_runs;
  const std::int64_t num_tiles = (num_runs + kTileRuns - 1) / kTileRuns;
  for (std::int64_t t = global_thread() / 32; t < num_tiles; t += num_threads() / 32) {
    const std::int64_t first_run = t * kTileRuns;
    const std::int64_t end_run =
        first_run + kTileRuns < num_runs ? first_run + kTileRuns : num_runs;
    const std::uint32_t records = plan.set_runs[first_run];
    const std::uint32_t end_records = plan.set_runs[end_run];
    const std::uint32_t num_misses = count_misses(plan, records, end_records);
    Count4 tile{0, 0, 0, end_records - records - num_misses};
    for (std::int64_t r = first_run; num_misses != 0 && r < end_run; ++r) {
      const std::uint32_t begin = plan.set_runs[r];
      const std::uint32_t end = plan.set_runs[r + 1];
      if (count_misses(plan, begin, end) == 0) continue;
      Set set(cache, arguments, set_of(plan.unique_tags[begin], cache.size.num_sets));
      admit(cache, plan, arguments, misses, set, begin, end, records, tile);
    }
    if (lane_of_warp() == 0) misses.tile_counts[t] = tile;
  }
  // The scan runs over the largest possible number of tiles.
  const std::int64_t max_tiles = (plan.num_ids + kTileRuns - 1) / kTileRuns;
  for (std::int64_t t = num_tiles + global_thread(); t < max_tiles; t += num_threads()) {
    misses.tile_counts[t] = {0, 0, 0, 0};
  }
}

/// Compacts the records of all tiles in order; assigns the overflow rows.
__global__ void __launch_bounds__(kThreads)
    list_misses(PlanView plan, ResolveArguments arguments, MissView misses) {
  const std::int64_t num_runs = plan.counts->set_runs;
  const std::int64_t num_tiles = (num_runs + kTileRuns - 1) / kTileRuns;
  for (std::int64_t t = global_thread() / 32; t < num_tiles; t += num_threads() / 32) {
    const Count4 through = misses.tile_counts[t];
    const Count4 before = t == 0 ? Count4{0, 0, 0, 0} : misses.tile_counts[t - 1];
    const std::uint32_t records = plan.set_runs[t * kTileRuns];
    for (std::uint32_t i = threadIdx.x % 32; i < through.a - before.a; i += 32) {
      const std::uint32_t unique = misses.record_unique[records + i];
      const std::int32_t ordinal = misses.record_ordinal[records + i];
      const Key key = key_of_tag(plan.unique_tags[unique]);
      std::int32_t slot = misses.record_slot[records + i];
      if (slot < 0) {
        const std::int64_t overflow = static_cast<std::int64_t>(before.c) + ordinal;
        if (overflow < arguments.max_overflow) {
          slot = arguments.overflow_slots[overflow];
          misses.overflow_keys[overflow] = key;
        }
      } else if (ordinal >= 0) {
        const std::int64_t writeback = static_cast<std::int64_t>(before.b) + ordinal;
        misses.writeback_keys[writeback] = key_of_tag(misses.record_victim[records + i]);
        misses.writeback_slots[writeback] = slot;
      }
      plan.slots[unique] = slot;
      misses.miss_keys[before.a + i] = key;
      misses.miss_slots[before.a + i] = slot;
    }
    if (t + 1 == num_tiles && lane_of_warp() == 0) {
      *misses.counts = {through.a, through.b, through.c, through.d};
    }
  }
}

}  // namespace

void CudaDevice::resolve(const Resolve& operation, StreamRef stream) {
  check_arguments(operation);
  const auto& [cache, plan, arguments, misses] = operation;
  fill(misses.counts, 0, sizeof(ResolveCounts), stream);
  if (plan.num_ids == 0) return;
  const std::int64_t max_tiles = (plan.num_ids + kTileRuns - 1) / kTileRuns;
  launch(probe_keys, grids_.grid_for(plan.num_ids, kThreads), stream, cache, plan, arguments);
  launch(resolve_sets, grids_.grid_for(max_tiles, kWarps), stream, cache, plan, arguments, misses);
  inclusive_sum(plan.prims_scratch, plan.prims_scratch_bytes, misses.tile_counts, max_tiles,
                stream);
  launch(list_misses, grids_.grid_for(max_tiles, kWarps), stream, plan, arguments, misses);
}

}  // namespace satrap::backend
