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

/// A group of 2^log2_size consecutive lanes of a warp, which works on one row. Groups of one warp
/// diverge, so collectives name only the group's lanes.
struct Group {
  int size;
  int lane;            // within the group
  std::uint32_t mask;  // its lanes within the warp

  __device__ explicit Group(int log2_size) : size(1 << log2_size) {
    const int warp_lane = static_cast<int>(threadIdx.x % 32);
    lane = warp_lane & (size - 1);
    mask = size == 32 ? 0xFFFFFFFFU : ((1U << size) - 1U) << (warp_lane - lane);
  }
  /// The value of another lane of the group.
  template <class T>
  __device__ T shuffle(T value, int source) const {
    return __shfl_sync(mask, value, source, size);
  }
  __device__ void sync() const { __syncwarp(mask); }
};

/// The group's number within the grid, and the number of groups.
__device__ inline std::int64_t global_group(int log2_size) { return global_thread() >> log2_size; }
__device__ inline std::int64_t num_groups(int log2_size) { return num_threads() >> log2_size; }

/// How a row of `quads` vectors of four numbers is spread over lanes: lane l of a group of
/// 2^log2_lanes holds quads l, l + 2^log2_lanes, ... at most kQuads of them. Small rows share a
/// warp.
struct RowLanes {
  int log2_lanes;
  int quads;
};

inline RowLanes row_lanes(std::int64_t padded_dim) {
  RowLanes lanes{0, static_cast<int>(padded_dim / 4)};
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
