#include <cuda_runtime.h>

#include "cuda/backend/cuda_device.h"
#include "cuda/backend/lanes.h"
#include "cuda/backend/prims.h"
#include "cuda/backend/sets.h"
#include "src/backend/arguments.h"

namespace satrap::backend {

namespace {

/// Copies rows between their slots and staging, 16 bytes per lane, a row per group of lanes.
/// Staging has the host's layout; in a slot the header is last.
template <bool kToStaging>
__global__ void __launch_bounds__(kThreads)
    move_rows(CacheView cache, SlotRange range, uint4* staging, int log2_lanes) {
  const Group group(log2_lanes);
  const int units = static_cast<int>(cache.layout.row_bytes / RowLayout::kUnit);
  const std::int64_t left = static_cast<std::int64_t>(*range.count) - range.begin;
  const std::int64_t num_rows = left < range.max_rows ? left : range.max_rows;
  for (std::int64_t i = global_group(log2_lanes); i < num_rows; i += num_groups(log2_lanes)) {
    const std::int64_t slot = range.slots[range.begin + i];
    if (slot < 0) continue;
    uint4* row = reinterpret_cast<uint4*>(cache.rows + slot * cache.layout.device_stride);
    uint4* staged = staging + i * units;
    if constexpr (kToStaging) {
      if (group.lane == 0 && slot < cache.size.num_slots() && cache.dirty[slot] == kChanged) {
        cache.dirty[slot] = kGathered;
      }
    }
#pragma unroll 1
    for (int u = group.lane; u < units; u += group.size) {
      uint4& unit = row[u == 0 ? units - 1 : u - 1];  // RowLayout::device_unit
      if constexpr (kToStaging) {
        staged[u] = unit;
      } else {
        unit = staged[u];
      }
    }
  }
}

template <bool kToStaging>
void copy_rows(const Grids& grids,
               const CacheView& cache,
               const SlotRange& range,
               std::byte* staging,
               StreamRef stream) {
  if (range.max_rows <= 0) return;
  const int log2_lanes = row_lanes(cache.layout.row_bytes / 4, 0).log2_lanes;
  launch(move_rows<kToStaging>, grids.grid_for(range.max_rows, kThreads >> log2_lanes), stream,
         cache, range, reinterpret_cast<uint4*>(staging), log2_lanes);
}

/// Copies rows from where they are into their slots, as move_rows does from staging.
__global__ void __launch_bounds__(kThreads)
    load_units(CacheView cache, SlotRange range, const uint4* const* rows, int log2_lanes) {
  const Group group(log2_lanes);
  const int units = static_cast<int>(cache.layout.row_bytes / RowLayout::kUnit);
  const std::int64_t count = *range.count;
  const std::int64_t num_rows = count < range.max_rows ? count : range.max_rows;
  for (std::int64_t i = global_group(log2_lanes); i < num_rows; i += num_groups(log2_lanes)) {
    const std::int64_t slot = range.slots[i];
    if (slot < 0) continue;
    uint4* to = reinterpret_cast<uint4*>(cache.rows + slot * cache.layout.device_stride);
    const uint4* from = rows[i];
#pragma unroll 1
    for (int u = group.lane; u < units; u += group.size) {
      to[u == 0 ? units - 1 : u - 1] = from[u];  // RowLayout::device_unit
    }
  }
}

__device__ bool is_listed(const CacheView& cache, std::int64_t slot) {
  return cache.digests[slot] != 0 && cache.dirty[slot] != kClean;
}

/// A warp per set.
__global__ void __launch_bounds__(kThreads)
    count_slots(CacheView cache, std::int64_t first_set, std::int64_t num_sets, SlotList list) {
  for (std::int64_t s = global_thread() / 32; s < num_sets; s += num_threads() / 32) {
    const std::int64_t slot = (first_set + s) * kWays + threadIdx.x % 32;
    const std::uint32_t listed = __ballot_sync(0xFFFFFFFFU, is_listed(cache, slot));
    if (threadIdx.x % 32 == 0)
      list.set_counts[s] = {static_cast<std::uint32_t>(__popc(listed)), 0, 0, 0};
  }
}

__global__ void __launch_bounds__(kThreads)
    write_slots(CacheView cache, std::int64_t first_set, std::int64_t num_sets, SlotList list) {
  for (std::int64_t s = global_thread() / 32; s < num_sets; s += num_threads() / 32) {
    const std::uint32_t lane = threadIdx.x % 32;
    const std::int64_t slot = (first_set + s) * kWays + lane;
    const bool mine = is_listed(cache, slot);
    const std::uint32_t listed = __ballot_sync(0xFFFFFFFFU, mine);
    const std::uint32_t before = s == 0 ? 0 : list.set_counts[s - 1].a;
    const auto rank = static_cast<std::uint32_t>(__popc(listed & ((1U << lane) - 1U)));
    if (mine) {
      list.slots[before + rank] = static_cast<std::int32_t>(slot);
      list.keys[before + rank] = key_of_tag(cache.tags[slot]);
    }
    if (s + 1 == num_sets && lane == 0) *list.count = list.set_counts[s].a;
  }
}

__global__ void __launch_bounds__(kThreads) clear_dirty(CacheView cache, SlotList list) {
  for (std::int64_t i = global_thread(); i < *list.count; i += num_threads()) {
    std::uint8_t& mark = cache.dirty[list.slots[i]];
    if (mark == kGathered) mark = kClean;
  }
}

}  // namespace

void CudaDevice::gather_rows(const GatherRows& operation, StreamRef stream) {
  copy_rows<true>(grids_, operation.cache, operation.from, operation.staging, stream);
}

void CudaDevice::scatter_rows(const ScatterRows& operation, StreamRef stream) {
  copy_rows<false>(grids_, operation.cache, operation.to, const_cast<std::byte*>(operation.staging),
                   stream);
}

void CudaDevice::load_rows(const LoadRows& operation, StreamRef stream) {
  const auto& [cache, slots, count, max_rows, rows] = operation;
  if (max_rows <= 0) return;
  const int log2_lanes = row_lanes(cache.layout.row_bytes / 4, 0).log2_lanes;
  launch(load_units, grids_.grid_for(max_rows, kThreads >> log2_lanes), stream, cache,
         SlotRange{slots, count, 0, max_rows}, reinterpret_cast<const uint4* const*>(rows),
         log2_lanes);
}

void CudaDevice::list_slots(const ListSlots& operation, StreamRef stream) {
  check_arguments(operation);
  const auto& [cache, first_set, num_sets, list] = operation;
  fill(list.count, 0, sizeof(std::uint32_t), stream);
  if (num_sets == 0) return;
  const unsigned grid = grids_.grid_for(num_sets, kWarps);
  launch(count_slots, grid, stream, cache, first_set, num_sets, list);
  inclusive_sum(list.prims_scratch, list.prims_scratch_bytes, list.set_counts, num_sets, stream);
  launch(write_slots, grid, stream, cache, first_set, num_sets, list);
}

void CudaDevice::mark_clean(const MarkClean& operation, StreamRef stream) {
  const auto& [cache, list] = operation;
  launch(clear_dirty, grids_.grid_for(cache.size.num_slots(), kThreads), stream, cache, list);
}

}  // namespace satrap::backend
