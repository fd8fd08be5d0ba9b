#include <cuda_runtime.h>

#include "cuda/backend/cuda_device.h"
#include "cuda/backend/lanes.h"
#include "cuda/backend/long_bags.h"
#include "cuda/backend/quad.h"

namespace satrap::backend {

namespace {

constexpr std::uint32_t kNoQuad = 0xFFFFFFFFU;

/// A vector of the output: its ids and its place, in quads.
struct Vector {
  std::uint32_t first_id, num_ids, quad;
};

/// The place of a vector that others sum is none.
__device__ Vector locate(const Bags& bags, std::int64_t number, int quads_per_vector) {
  std::int64_t f = 0, end = bags.num_features;  // the last feature that begins at or before it
  while (end - f > 1) {
    const std::int64_t middle = (f + end) / 2;
    (bags.features[middle].first_vector <= number ? f : end) = middle;
  }
  const BagFeature feature = bags.features[f];
  const auto within = static_cast<std::uint32_t>(number - feature.first_vector);
  const auto per_row = static_cast<std::uint32_t>(feature.vectors_per_row);
  const std::uint32_t row = per_row == 1 ? within : within / per_row;
  const std::uint32_t element = within - row * per_row;
  const std::int64_t bag = f * bags.num_examples + row;
  const auto begin = static_cast<std::uint32_t>(bags.offsets[bag]);
  const std::uint32_t length = static_cast<std::uint32_t>(bags.offsets[bag + 1]) - begin;
  const std::int64_t quad = (row * bags.row_stride + feature.column) / 4 +
                            static_cast<std::int64_t>(element) * quads_per_vector;
  if (feature.pooling != Pooling::kSequence) {
    if (bags.num_long_bags > 0 && length > kMaxShortBag) return {0, 0, kNoQuad};
    return {begin, length, static_cast<std::uint32_t>(quad)};
  }
  return {begin + element, element < length ? 1U : 0U, static_cast<std::uint32_t>(quad)};
}

/// The vectors [first, first + count) of a group, one located by each lane. The group goes through
/// their ids one after the other; an empty vector counts as one turn without an id.
class Vectors {
 public:
  __device__ Vectors(const Group& group, const Bags& bags, std::int64_t first, int count, int quads)
      : group_(group) {
    const std::int64_t number = first + group.lane;
    const bool is_vector = group.lane < count && number < bags.num_vectors;
    if (is_vector) vector_ = locate(bags, number, quads);
    const bool is_empty = vector_.num_ids == 0 && vector_.quad != kNoQuad;
    const std::uint32_t turns = is_empty ? 1 : vector_.num_ids;
    through_ = group.sum_through(turns);
    first_turn_ = through_ - turns;
  }

  __device__ std::uint32_t num_turns() const { return group_.shuffle(through_, group_.size - 1); }

  /// One turn: its id, if it has one, and the place of the vector that it completes, or kNoQuad.
  struct Turn {
    bool has_id;
    std::uint32_t id, quad;
  };
  /// A turn per lane, each any below num_turns(). All lanes of the warp call it.
  __device__ Turn turn(std::uint32_t number) const {
    int v = 0;  // the vector: the first whose turns end after it
    for (int step = group_.size / 2; step > 0; step /= 2) {
      if (group_.shuffle(through_, v + step - 1) <= number) v += step;
    }
    const std::uint32_t within = number - group_.shuffle(first_turn_, v);
    const std::uint32_t num_ids = group_.shuffle(vector_.num_ids, v);
    const std::uint32_t first_id = group_.shuffle(vector_.first_id, v);
    const std::uint32_t quad = group_.shuffle(vector_.quad, v);
    return {within < num_ids, first_id + within, within + 1 >= num_ids ? quad : kNoQuad};
  }

 private:
  const Group& group_;
  Vector vector_{0, 0, kNoQuad};
  std::uint32_t through_;     // turns of the group's vectors up to and including this lane's
  std::uint32_t first_turn_;  // of this lane's vector
};

/// Rows in flight per group: enough to hide the latency of one, few enough for the registers.
template <int kQuads>
constexpr int kRowsInFlight = kQuads == 1   ? 4
                              : kQuads == 2 ? 2
                                            : 1;

/// Up to 32 consecutive vectors of the output per warp, divided among its groups.
template <FloatType kWeights, int kQuads>
__global__ void __launch_bounds__(kThreads, kQuads <= 2 ? 8 : 4) pool_rows(CacheView cache,
                                                                           Bags bags,
                                                                           PlanView plan,
                                                                           RowLanes lanes,
                                                                           FloatType out_type,
                                                                           void* out) {
  constexpr int kRows = kRowsInFlight<kQuads>;
  const Group group(lanes.log2_lanes);
  const auto size = static_cast<std::uint32_t>(group.size);
  const int per_group = items_per_group(group, lanes.log2_lanes, bags.num_vectors);
  const std::int64_t per_warp = per_group * (32 >> lanes.log2_lanes);
  const std::int64_t my_group = threadIdx.x % 32 >> lanes.log2_lanes;
  for (std::int64_t first = global_thread() / 32 * per_warp; first < bags.num_vectors;
       first += num_threads() / 32 * per_warp) {
    const Vectors vectors(group, bags, first + my_group * per_group, per_group, lanes.quads);
    const std::uint32_t num_turns = vectors.num_turns();
    const std::uint32_t most_turns = __reduce_max_sync(kAllLanes, num_turns);
    float4 sum[kQuads] = {};
    for (std::uint32_t tile = 0; tile < most_turns; tile += size) {
      const std::uint32_t number = tile + static_cast<std::uint32_t>(group.lane);
      const bool is_turn = number < num_turns;
      const auto turn = vectors.turn(is_turn ? number : 0);
      const bool has_id = is_turn && turn.has_id;
      const std::int32_t unique = has_id ? plan.unique_of[turn.id] : -1;
      const float my_factor = has_id ? plan.coefficients[turn.id] : kNoFactor;
      const std::int32_t my_slot = unique < 0 ? -1 : plan.slots[unique];
      const std::uint32_t my_quad = is_turn ? turn.quad : kNoQuad;
      const std::uint32_t left = most_turns - tile;
      const int count = static_cast<int>(left < size ? left : size);
      for (int i = 0; i < count; i += kRows) {
        StoredQuad<kWeights> row[kRows][kQuads] = {};
        bool valid[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const std::int32_t slot = group.shuffle(my_slot, i + r);
          valid[r] = i + r < group.size && slot >= 0;
          const auto* weights = reinterpret_cast<const StoredQuad<kWeights>*>(
              cache.rows + offset_of(slot, cache.layout.device_stride));
#pragma unroll
          for (int k = 0; k < kQuads; ++k) {
            const int quad = group.lane + k * 32;
            if (valid[r] && quad < lanes.quads) row[r][k] = weights[quad];
          }
        }
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const float shuffled = group.shuffle(my_factor, i + r);
          const float factor = valid[r] ? shuffled : kNoFactor;
          const std::uint32_t out_quad = group.shuffle(my_quad, i + r);
#pragma unroll
          for (int k = 0; k < kQuads; ++k) {
            sum[k] = fma_quad(factor, to_float4<kWeights>(row[r][k]), sum[k]);
          }
          if (i + r >= group.size || out_quad == kNoQuad) continue;
#pragma unroll
          for (int k = 0; k < kQuads; ++k) {
            const int quad = group.lane + k * 32;
            if (quad < lanes.quads) {
              store_quad(out_type, out, static_cast<std::int64_t>(out_quad) + quad, sum[k]);
            }
            sum[k] = make_float4(0, 0, 0, 0);
          }
        }
      }
    }
  }
}

}  // namespace

void CudaDevice::pool_forward(const PoolForward& operation, StreamRef stream) {
  const auto& [cache, bags, plan, out_type, out] = operation;
  if (bags.num_vectors == 0) return;
  pool_long_bags(grids_, operation, stream);
  const RowLanes lanes = row_lanes(cache.layout.padded_dim, 0);
  const unsigned grid = grids_.grid_for(bags.num_vectors, kThreads >> lanes.log2_lanes);
  with_quads_per_lane(lanes, [&](auto quads) {
    const auto run = [&](auto kernel) {
      launch(kernel, grid, stream, cache, bags, plan, lanes, out_type, out);
    };
    switch (cache.layout.weight_type) {
      case FloatType::kFp32:
        return run(pool_rows<FloatType::kFp32, quads()>);
      case FloatType::kBf16:
        return run(pool_rows<FloatType::kBf16, quads()>);
      case FloatType::kFp16:
        return run(pool_rows<FloatType::kFp16, quads()>);
    }
  });
}

}  // namespace satrap::backend
