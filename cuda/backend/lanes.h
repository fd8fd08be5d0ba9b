#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "cuda/backend/launch.h"

/// How threads divide the work.
namespace satrap::backend {

__device__ inline std::int64_t global_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}
__device__ inline std::int64_t num_threads() {
  return static_cast<std::int64_t>(gridDim.x) * kThreads;
}

inline constexpr std::uint32_t kAllLanes = 0xFFFFFFFFU;

/// A group of 2^log2_size consecutive lanes of a warp, which works on one row. The groups of a warp
/// go through the same steps, one of them idle where it has less to do: collectives then name all
/// lanes, which costs nothing, and a mask that is known only at run time would cost several
/// instructions in front of each.
struct Group {
  int size;
  int lane;  // within the group

  __device__ explicit Group(int log2_size)
      : size(1 << log2_size), lane(static_cast<int>(threadIdx.x) & (size - 1)) {}
  /// The value of another lane of the group. All lanes of the warp call it.
  template <class T>
  __device__ T shuffle(T value, int source) const {
    return __shfl_sync(kAllLanes, value, source, size);
  }
  /// The sum over the lanes of the group up to and including this one. All lanes of the warp call
  /// it.
  __device__ std::uint32_t sum_through(std::uint32_t value) const {
    for (int distance = 1; distance < size; distance *= 2) {
      const std::uint32_t before =
          __shfl_up_sync(kAllLanes, value, static_cast<unsigned>(distance), size);
      if (lane >= distance) value += before;
    }
    return value;
  }
};

/// The group's number within the grid, and the number of groups.
__device__ inline std::int64_t global_group(int log2_size) { return global_thread() >> log2_size; }
__device__ inline std::int64_t num_groups(int log2_size) { return num_threads() >> log2_size; }

/// How many consecutive items each group takes at a time, one located by each lane: one per lane,
/// or fewer where that would leave other groups of the grid without work.
__device__ inline int items_per_group(const Group& group, int log2_size, std::int64_t items) {
  const std::int64_t share = items / num_groups(log2_size);
  return share >= group.size ? group.size : share > 1 ? static_cast<int>(share) : 1;
}

/// The place of row `slot` in an array of rows of less than 4 GiB each, from one multiplication. Of
/// a negative slot it is nowhere.
__device__ inline std::uint64_t offset_of(std::int32_t slot, std::int64_t stride) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(slot)) *
         static_cast<std::uint32_t>(stride);
}

/// How a row of `quads` vectors of four numbers is spread over lanes: lane l of a group of
/// 2^log2_lanes holds quads l, l + 32, ... at most kQuads of them: more than one only in a group
/// of 32. Small rows share a warp.
struct RowLanes {
  int log2_lanes;
  int quads;
};

/// Groups have at least 2^least_log2_lanes lanes, idle ones in the smallest rows.
inline RowLanes row_lanes(std::int64_t padded_dim, int least_log2_lanes) {
  RowLanes lanes{least_log2_lanes, static_cast<int>(padded_dim / 4)};
  while (lanes.log2_lanes < 5 && (1 << lanes.log2_lanes) < lanes.quads) ++lanes.log2_lanes;
  return lanes;
}

/// Calls function(integral_constant<int, kQuads>) with the number of quads per lane, rounded up to
/// a power of two.
template <class Function>
void with_quads_per_lane(RowLanes lanes, Function&& function) {
  const int per_lane = (lanes.quads + 31) / 32;
  if (per_lane <= 1) {
    function(std::integral_constant<int, 1>{});
  } else if (per_lane <= 2) {
    function(std::integral_constant<int, 2>{});
  } else if (per_lane <= 4) {
    function(std::integral_constant<int, 4>{});
  } else {
    function(std::integral_constant<int, 8>{});
  }
}

}  // namespace satrap::backend
