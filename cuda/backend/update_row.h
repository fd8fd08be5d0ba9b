#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "cuda/backend/lanes.h"
#include "cuda/backend/quad.h"
#include "satrap/backend/operations.h"
#include "satrap/kernels/row_formulas.h"

/// The row optimizers on the device, a quad of weights at a time, by the formulas of
/// row_formulas.h. The order of sums is exactly that of row_update.h.
namespace satrap::backend {

/// Everything about an update that is the same for all rows.
struct UpdateArguments {
  CacheView cache;
  const TableStep* steps;  // [tables]

  __device__ const TableStep& step_of(std::uint64_t tag) const {
    return steps[static_cast<int>(table_of(key_of_tag(tag)))];
  }
};

namespace detail {

template <RowOptimizerType kType>
__device__ inline void step_quad(const RowStep& s, float4 grad, float4& w, float4& a, float4& b) {
  step_element<kType>(s, grad.x, w.x, a.x, b.x);
  step_element<kType>(s, grad.y, w.y, a.y, b.y);
  step_element<kType>(s, grad.z, w.z, a.z, b.z);
  step_element<kType>(s, grad.w, w.w, a.w, b.w);
}

/// The numbers of a row that are read before its gradient is there: all numbers of a row of one
/// quad per lane. Longer rows have no registers for them. Zeros where there is no row.
template <int kStates>
struct FetchedRow {
  const TableStep* table = nullptr;
  std::uint32_t count = 0;  // of updates
  float4 w{}, state[kStates == 0 ? 1 : kStates] = {};
};

/// A row in the cache; with a negative slot it is none, and is not accessed.
struct Row {
  const RowLayout& layout;
  std::byte* bytes;

  __device__ Row(const CacheView& cache, std::int32_t slot)
      : layout(cache.layout), bytes(cache.rows + offset_of(slot, cache.layout.device_stride)) {}

  __device__ RowHeader& header() const {
    return *reinterpret_cast<RowHeader*>(bytes + layout.device_header_offset());
  }
  __device__ float* state() const {
    return reinterpret_cast<float*>(bytes + layout.device_state_offset());
  }
  __device__ float4 weights(int quad) const { return load_quad(layout.weight_type, bytes, quad); }
  /// The numbers that round its weights; fp32 needs none.
  __device__ RandomStream random(const TableStep& table, const std::uint64_t* tag) const {
    return layout.weight_type == FloatType::kFp32
               ? RandomStream{}
               : rounding_stream(table.rounding_seed, key_of_tag(*tag));
  }
  __device__ void store_weights(int quad, float4 w, const RandomStream& random) const {
    store_quad_stochastic(layout.weight_type, bytes, quad, w, random);
  }
};

/// Asks for what all optimizers need.
template <int kStates>
__device__ inline void fetch_header(const UpdateArguments& arguments,
                                    const Row& row,
                                    const std::uint64_t* tag,
                                    FetchedRow<kStates>& fetched) {
  fetched.table = &arguments.step_of(*tag);
  fetched.count = row.header().count;
}

/// Called by one lane: notes the update in the header and, unless it is an overflow row, in the
/// cache's bookkeeping.
__device__ inline void note_update(const CacheView& cache,
                                   std::int32_t slot,
                                   std::uint32_t count,
                                   std::uint32_t step) {
  RowHeader header{{}, 0, count};
  satrap::note_update(header, step);
  RowHeader& stored = Row(cache, slot).header();
  stored.last_step = header.last_step;
  stored.count = header.count;
  if (slot < cache.size.num_slots()) cache.dirty[slot] = kChanged;
}

}  // namespace detail

/// Runs the optimizer on the row of `slot`, whose gradient the lanes of the group hold: lane l the
/// quads l + 32 k. `tag` points to that of its key. All lanes of the warp call it; a negative slot
/// has no row.
template <RowOptimizerType kType, int kQuads>
struct RowUpdate {
  static constexpr int kStates = kind_of(kType).num_states;
  using Fetched = detail::FetchedRow<kStates>;

  UpdateArguments arguments;

  __device__ void fetch(const Group& group,
                        RowLanes lanes,
                        std::int32_t slot,
                        const std::uint64_t* tag,
                        Fetched& fetched) const {
    if (slot < 0) return;
    const detail::Row row(arguments.cache, slot);
    detail::fetch_header(arguments, row, tag, fetched);
    if (kQuads == 1 && group.lane < lanes.quads) load(row, lanes, group.lane, fetched);
  }

  __device__ void operator()(const Group& group,
                             RowLanes lanes,
                             std::int32_t slot,
                             const std::uint64_t* tag,
                             Fetched& fetched,
                             const float4 (&grad)[kQuads]) const {
    if (slot < 0) return;
    const detail::Row row(arguments.cache, slot);
    const TableStep& table = *fetched.table;
    const RandomStream random = row.random(table, tag);
#pragma unroll
    for (int k = 0; k < kQuads; ++k) {
      const int quad = group.lane + k * 32;
      if (quad >= lanes.quads) continue;
      if (kQuads > 1) load(row, lanes, quad, fetched);
      float4 none{};
      float4& a = kStates > 0 ? fetched.state[0] : none;
      float4& b = kStates > 1 ? fetched.state[kStates - 1] : none;
      detail::step_quad<kType>(table.step, grad[k], fetched.w, a, b);
      row.store_weights(quad, fetched.w, random);
      float4* state = reinterpret_cast<float4*>(row.state()) + quad;
#pragma unroll
      for (int s = 0; s < kStates; ++s) state[s * lanes.quads] = fetched.state[s];
    }
    if (group.lane == 0) {
      detail::note_update(arguments.cache, slot, fetched.count, table.number);
    }
  }

 private:
  __device__ static void load(const detail::Row& row, RowLanes lanes, int quad, Fetched& fetched) {
    fetched.w = row.weights(quad);
    const float4* state = reinterpret_cast<const float4*>(row.state()) + quad;
#pragma unroll
    for (int s = 0; s < kStates; ++s) fetched.state[s] = state[s * lanes.quads];
  }
};

/// Row-wise Adagrad first needs the sum of squares over the row, in the order of row_update.h:
/// eight interleaved sums. The lanes write their squares to shared memory, eight of them (or as
/// many as the group has) take one sum each, and all combine the eight.
template <int kQuads>
struct RowUpdate<RowOptimizerType::kRowwiseAdagrad, kQuads> {
  struct Fetched : detail::FetchedRow<0> {
    float accumulator = 0.0F;
  };

  UpdateArguments arguments;

  __device__ void fetch(const Group& group,
                        RowLanes lanes,
                        std::int32_t slot,
                        const std::uint64_t* tag,
                        Fetched& fetched) const {
    if (slot < 0) return;
    const detail::Row row(arguments.cache, slot);
    detail::fetch_header<0>(arguments, row, tag, fetched);
    fetched.accumulator = row.state()[0];
    if (kQuads == 1 && group.lane < lanes.quads) fetched.w = row.weights(group.lane);
  }

  __device__ void operator()(const Group& group,
                             RowLanes lanes,
                             std::int32_t slot,
                             const std::uint64_t* tag,
                             Fetched& fetched,
                             const float4 (&grad)[kQuads]) const {
    const detail::Row row(arguments.cache, slot);
    const auto weights = [&](int quad) { return kQuads == 1 ? fetched.w : row.weights(quad); };
    float4 g[kQuads] = {};
#pragma unroll
    for (int k = 0; k < kQuads; ++k) {
      const int quad = group.lane + k * 32;
      if (slot < 0 || quad >= lanes.quads) continue;
      g[k] = fma_quad(fetched.table->step.weight_decay, weights(quad), grad[k]);
    }
    const float sum = sum_of_squares(group, lanes, g);
    if (slot < 0) return;
    const TableStep& table = *fetched.table;
    const RandomStream random = row.random(table, tag);
    float n = fetched.accumulator;
    const float rate = rowwise_rate(table.step, sum, row.layout.dim, n);
#pragma unroll
    for (int k = 0; k < kQuads; ++k) {
      const int quad = group.lane + k * 32;
      if (quad >= lanes.quads) continue;
      row.store_weights(quad, fma_quad(-rate, g[k], weights(quad)), random);
    }
    if (group.lane == 0) {
      row.state()[0] = n;
      detail::note_update(arguments.cache, slot, fetched.count, table.number);
    }
  }

 private:
  __device__ static float sum_of_squares(const Group& group,
                                         RowLanes lanes,
                                         const float4 (&g)[kQuads]) {
    constexpr int kRoom = kQuads * 4;  // a lane's quads
    alignas(float4) static __shared__ float squares[kThreads * kRoom];
    static __shared__ float sums[kThreads * 8];
    const int first_thread = static_cast<int>(threadIdx.x) - group.lane;
    float* mine = squares + first_thread * kRoom;
    float* eight = sums + first_thread * 8;
    const int size = lanes.quads * 4;
#pragma unroll
    for (int k = 0; k < kQuads; ++k) {
      const int quad = group.lane + k * 32;
      if (quad >= lanes.quads) continue;
      reinterpret_cast<float4*>(mine)[quad] =
          make_float4(g[k].x * g[k].x, g[k].y * g[k].y, g[k].z * g[k].z, g[k].w * g[k].w);
    }
    __syncwarp();
    for (int i = group.lane; i < 8; i += group.size) {
      float sum = 0.0F;
      for (int d = i; d < size; d += 8) sum += mine[d];
      eight[i] = sum;
    }
    __syncwarp();
    // The next row's squares go to other memory than is read here, its sums follow a barrier.
    return sum_of_eight(eight);
  }
};

}  // namespace satrap::backend
