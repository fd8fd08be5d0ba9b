#include <cuda_runtime.h>

#include "cuda/backend/cuda_device.h"
#include "cuda/backend/lanes.h"
#include "cuda/backend/sets.h"
#include "src/backend/arguments.h"

namespace satrap::backend {

namespace {

/// Notes in the cache which of its rows the batch needs, one key per thread, and clears the batch's
/// own line of next uses, which begins at `line`.
__global__ void __launch_bounds__(kThreads) touch_slots(CacheView cache,
                                                        WindowView window,
                                                        PlanView plan,
                                                        TouchArguments arguments,
                                                        std::int64_t line) {
  const std::int64_t num_unique = plan.counts->unique;
  for (std::int64_t u = global_thread(); u < num_unique; u += num_threads()) {
    if (u < window.size.max_keys) window.next_uses[line + u] = 0;
    const std::int32_t slot = find(cache, plan.unique_tags[u]);
    if (slot >= 0 && cache.next_use[slot] <= arguments.resolved) {
      cache.next_use[slot] = arguments.batch;
    }
  }
}

/// Enters a key of the batch into its set of the directory, of which each lane of the warp holds an
/// entry, and notes the batch as the next use of the key where it was seen last. `note`: where its
/// own next use will be noted.
__device__ void enter(const WindowView& window,
                      const TouchArguments& arguments,
                      std::int64_t entry,  // of this lane
                      std::uint64_t tag,
                      std::uint32_t note,
                      std::uint64_t& my_tag,
                      std::uint32_t& my_batch) {
  std::uint32_t ways = __ballot_sync(kAllLanes, my_tag == tag && my_batch != 0);
  const bool known = ways != 0;
  if (!known) {
    const std::uint32_t oldest = __reduce_min_sync(kAllLanes, my_batch);
    ways = __ballot_sync(kAllLanes, my_batch == oldest);
  }
  if (lowest(ways) != lane_of_warp()) return;
  if (known && my_batch > arguments.resolved) {
    const std::uint32_t seen = window.notes[entry];
    if (seen != WindowView::kNoNote) window.next_uses[seen] = arguments.batch;
  }
  my_tag = tag;
  my_batch = arguments.batch;
  window.tags[entry] = tag;
  window.batches[entry] = arguments.batch;
  window.notes[entry] = note;
}

/// One warp per 32 keys enters those sets of the directory whose first key is among them.
__global__ void __launch_bounds__(kThreads)
    touch_window(WindowView window, PlanView plan, TouchArguments arguments, std::int64_t line) {
  const std::int64_t num_unique = plan.counts->unique;
  const auto set = [&](std::int64_t u) {
    return set_of(plan.unique_tags[u], window.size.num_sets);
  };
  for (std::int64_t first = global_thread() / 32 * 32; first < num_unique; first += num_threads()) {
    const std::int64_t mine = first + lane_of_warp();
    const bool head = mine < num_unique && (mine == 0 || set(mine - 1) != set(mine));
    for (std::uint32_t heads = __ballot_sync(kAllLanes, head); heads != 0; heads &= heads - 1) {
      const std::int64_t begin = first + lowest(heads);
      const std::uint64_t number = set(begin);
      const std::int64_t entry = static_cast<std::int64_t>(number) * kWays + lane_of_warp();
      std::uint64_t my_tag = window.tags[entry];
      std::uint32_t my_batch = window.batches[entry];
      for (std::int64_t u = begin; u < num_unique && set(u) == number; ++u) {
        enter(window, arguments, entry, plan.unique_tags[u],
              u < window.size.max_keys ? static_cast<std::uint32_t>(line + u) : WindowView::kNoNote,
              my_tag, my_batch);
      }
    }
  }
}

}  // namespace

void CudaDevice::touch(const Touch& operation, StreamRef stream) {
  check_arguments(operation);
  const auto& [cache, window, plan, arguments] = operation;
  if (plan.num_ids == 0) return;
  const unsigned grid = grids_.grid_for(plan.num_ids, kThreads);
  const std::int64_t line = arguments.batch % window.size.depth * window.size.max_keys;
  launch(touch_slots, grid, stream, cache, window, plan, arguments, line);
  launch(touch_window, grid, stream, window, plan, arguments, line);
}

}  // namespace satrap::backend
