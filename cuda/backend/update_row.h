#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "cuda/backend/lanes.h"
#include "cuda/backend/quad.h"
#include "satrap/backend/operations.h"

/// The row optimizers on the device, a quad of weights at a time. Formulas: row_optimizer.h. The
/// fused multiplications and additions, and the order of sums, are exactly those of row_update.h.
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

/// One element's step of an optimizer that uses only that element. a and b: its state.
template <RowOptimizerType kType>
__device__ inline void step_element(const RowStep& s, float grad, float& w, float& a, float& b) {
  const float g = fmaf(s.weight_decay, w, grad);
  if constexpr (kType == RowOptimizerType::kSgd) {
    w = fmaf(-s.lr, g, w);
  } else if constexpr (kType == RowOptimizerType::kAdagrad) {
    a = fmaf(g, g, a);
    w -= s.lr * g / (sqrtf(a) + s.eps);
  } else if constexpr (kType == RowOptimizerType::kAdam) {
    a = fmaf(s.beta1, a, s.one_minus_beta1 * g);
    b = fmaf(s.beta2, b, s.one_minus_beta2 * g * g);
    w -= s.lr * a / (sqrtf(b) + s.eps);
  } else {
    static_assert(kType == RowOptimizerType::kFtrl);
    const float old_root = sqrtf(b);
    b = fmaf(g, g, b);
    const float root = sqrtf(b);
    const float sigma = (root - old_root) * s.ftrl_inverse_lr;
    a = fmaf(-sigma, w, fmaf(s.factor, g, a));
    const float curvature = fmaf(s.ftrl_beta + root, s.ftrl_inverse_lr, s.ftrl_l2);
    const float pulled = (copysignf(s.ftrl_l1, a) - a) / curvature;
    w = fabsf(a) <= s.ftrl_l1 ? 0.0F : pulled;
  }
}

template <RowOptimizerType kType>
__device__ inline void step_quad(const RowStep& s, float4 grad, float4& w, float4& a, float4& b) {
  step_element<kType>(s, grad.x, w.x, a.x, b.x);
  step_element<kType>(s, grad.y, w.y, a.y, b.y);
  step_element<kType>(s, grad.z, w.z, a.z, b.z);
  step_element<kType>(s, grad.w, w.w, a.w, b.w);
}

/// A row in the cache, and the random numbers of its rounding, which fp32 weights do not need.
struct Row {
  std::byte* bytes;
  float* state;
  RandomStream random;

  __device__ Row(const UpdateArguments& arguments,
                 std::uint64_t rounding_seed,
                 std::int64_t slot,
                 std::uint64_t tag)
      : bytes(arguments.cache.rows + slot * arguments.cache.layout.device_stride),
        state(reinterpret_cast<float*>(bytes + arguments.cache.layout.device_state_offset())),
        random(arguments.cache.layout.weight_type == FloatType::kFp32
                   ? RandomStream{}
                   : rounding_stream(rounding_seed, key_of_tag(tag))) {}

  __device__ float4 weights(const UpdateArguments& arguments, int quad) const {
    return load_quad(arguments.cache.layout.weight_type, bytes, quad);
  }
  __device__ void store_weights(const UpdateArguments& arguments, int quad, float4 w) const {
    store_quad_stochastic(arguments.cache.layout.weight_type, bytes, quad, w, random);
  }
  /// Called by one lane: notes the update in the header and, unless it is an overflow row, in the
  /// cache's bookkeeping.
  __device__ void note_update(const UpdateArguments& arguments,
                              std::int64_t slot,
                              std::uint32_t step) const {
    const CacheView& cache = arguments.cache;
    satrap::note_update(*reinterpret_cast<RowHeader*>(bytes + cache.layout.device_header_offset()),
                        step);
    if (slot < cache.size.num_slots()) cache.dirty[slot] = kChanged;
  }
};

}  // namespace detail

/// Runs the optimizer on the row of `slot`, whose gradient the lanes of the group hold: lane l the
/// quads l + k * group.size.
template <RowOptimizerType kType, int kQuads>
struct RowUpdate {
  UpdateArguments arguments;

  __device__ void operator()(const Group& group,
                             RowLanes lanes,
                             std::int64_t slot,
                             std::uint64_t tag,
                             const float4 (&grad)[kQuads]) const {
    const TableStep& table = arguments.step_of(tag);
    const detail::Row row(arguments, table.rounding_seed, slot, tag);
    const int padded_dim = lanes.quads * 4;
    constexpr bool kOneState = kType == RowOptimizerType::kAdagrad;
    constexpr bool kTwoStates =
        kType == RowOptimizerType::kAdam || kType == RowOptimizerType::kFtrl;
#pragma unroll
    for (int k = 0; k < kQuads; ++k) {
      const int quad = group.lane + k * group.size;
      if (quad >= lanes.quads) continue;
      float4 w = row.weights(arguments, quad);
      float4 a{}, b{};
      float4* first = reinterpret_cast<float4*>(row.state) + quad;
      float4* second = reinterpret_cast<float4*>(row.state + padded_dim) + quad;
      if constexpr (kOneState || kTwoStates) a = *first;
      if constexpr (kTwoStates) b = *second;
      detail::step_quad<kType>(table.step, grad[k], w, a, b);
      row.store_weights(arguments, quad, w);
      if constexpr (kOneState || kTwoStates) *first = a;
      if constexpr (kTwoStates) *second = b;
    }
    if (group.lane == 0) row.note_update(arguments, slot, table.number);
  }
};

/// Row-wise Adagrad first needs the sum of squares over the row, in the order of row_update.h:
/// eight interleaved sums. The lanes write their squares to shared memory, eight of them (or as
/// many as the group has) take one sum each, and all combine the eight.
template <int kQuads>
struct RowUpdate<RowOptimizerType::kRowwiseAdagrad, kQuads> {
  UpdateArguments arguments;

  __device__ void operator()(const Group& group,
                             RowLanes lanes,
                             std::int64_t slot,
                             std::uint64_t tag,
                             const float4 (&grad)[kQuads]) const {
    const TableStep& table = arguments.step_of(tag);
    const RowStep& s = table.step;
    const detail::Row row(arguments, table.rounding_seed, slot, tag);
    float4 g[kQuads] = {};
#pragma unroll
    for (int k = 0; k < kQuads; ++k) {
      const int quad = group.lane + k * group.size;
      if (quad >= lanes.quads) continue;
      g[k] = fma_quad(s.weight_decay, row.weights(arguments, quad), grad[k]);
    }
    const float sum = sum_of_squares(group, lanes, g);
    const float n = row.state[0] + sum / static_cast<float>(arguments.cache.layout.dim);
    const float scale = s.lr / (sqrtf(n) + s.eps);
    group.sync();  // all lanes have read n
#pragma unroll
    for (int k = 0; k < kQuads; ++k) {
      const int quad = group.lane + k * group.size;
      if (quad >= lanes.quads) continue;
      row.store_weights(arguments, quad, fma_quad(-scale, g[k], row.weights(arguments, quad)));
    }
    if (group.lane == 0) {
      row.state[0] = n;
      row.note_update(arguments, slot, table.number);
    }
  }

 private:
  __device__ static float sum_of_squares(const Group& group,
                                         RowLanes lanes,
                                         const float4 (&g)[kQuads]) {
    // Room per lane for its quads; a group of one lane still needs eight numbers.
    constexpr int kRoom = kQuads * 4 < 8 ? 8 : kQuads * 4;
    alignas(float4) static __shared__ float squares[kThreads * kRoom];
    static __shared__ float sums[kThreads * 8];
    const int first_thread = static_cast<int>(threadIdx.x) - group.lane;
    float* mine = squares + first_thread * kRoom;
    float* eight = sums + first_thread * 8;
    const int size = lanes.quads * 4;
#pragma unroll
    for (int k = 0; k < kQuads; ++k) {
      const int quad = group.lane + k * group.size;
      if (quad >= lanes.quads) continue;
      reinterpret_cast<float4*>(mine)[quad] =
          make_float4(g[k].x * g[k].x, g[k].y * g[k].y, g[k].z * g[k].z, g[k].w * g[k].w);
    }
    group.sync();
    for (int i = group.lane; i < 8; i += group.size) {
      float sum = 0.0F;
      for (int d = i; d < size; d += 8) sum += mine[d];
      eight[i] = sum;
    }
    group.sync();
    const float total = ((eight[0] + eight[4]) + (eight[2] + eight[6])) +
                        ((eight[1] + eight[5]) + (eight[3] + eight[7]));
    // The next row's squares go to other memory than is read here, its sums follow a barrier.
    return total;
  }
};

}  // namespace satrap::backend
