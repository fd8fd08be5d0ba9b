#include <cuda_runtime.h>

#include "cuda/backend/lanes.h"
#include "cuda/backend/long_bags.h"
#include "cuda/backend/quad.h"

/// A bag's sum is defined in the order of its ids, so it cannot be divided; but its columns can,
/// and rows can be on their way while earlier ones are added. A warp sums 128 bytes of the rows of
/// a bag. It loads them 16 bytes per lane, kTiles tiles of 32 rows ahead, and passes them through
/// shared memory to the lanes that own their columns.
namespace satrap::backend {

namespace {

constexpr int kTileRows = 32;
constexpr int kTiles = 4;
static_assert(kTiles % 2 == 0, "tiles take turns in two places, from bag to bag too");
constexpr std::uint32_t kRound = kTiles * kTileRows;
constexpr int kStripBytes = 128;
constexpr int kUnits = kStripBytes / 16;                // of 16 bytes, per row
constexpr int kUnitsPerLane = kTileRows * kUnits / 32;  // of a tile

/// The keys of kTiles tiles of ids from `first` on, one of each tile by each lane; -1 from `end`
/// on.
struct Keys {
  std::int32_t unique[kTiles];

  __device__ Keys(const PlanView& plan, std::uint32_t first, std::uint32_t end) {
#pragma unroll
    for (int k = 0; k < kTiles; ++k) {
      const std::uint32_t id = first + k * kTileRows + threadIdx.x % 32;
      unique[k] = id < end ? plan.unique_of[id] : -1;
    }
  }
};

/// Their slots and factors.
struct Places {
  std::int32_t slot[kTiles];
  float factor[kTiles];

  __device__ Places(const PlanView& plan, const Keys& keys, std::uint32_t first) {
#pragma unroll
    for (int k = 0; k < kTiles; ++k) {
      const std::uint32_t id = first + k * kTileRows + threadIdx.x % 32;
      const bool has_key = keys.unique[k] >= 0;
      slot[k] = has_key ? plan.slots[keys.unique[k]] : -1;
      factor[k] = has_key ? plan.coefficients[id] : kNoFactor;
    }
  }
};

/// A tile as it is summed: 32 lanes own a word of each row.
struct SharedTile {
  uint4 units[kTileRows * kUnits];
  float factors[kTileRows];
};

/// A tile on its way. A lane loads units l, l + 32, ...: of every fourth row.
struct Tile {
  uint4 units[kUnitsPerLane];
  float my_factor;  // of the row whose number is the lane's

  /// `offset`: of the lane's units in a row, in bytes; negative beyond the weights.
  __device__ void fetch(const CacheView& cache, int offset, std::int32_t my_slot, float factor) {
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int u = 0; u < kUnitsPerLane; ++u) {
      const int row = u * (32 / kUnits) + lane / kUnits;
      const std::int32_t slot = __shfl_sync(kAllLanes, my_slot, row);
      units[u] = make_uint4(0, 0, 0, 0);
      if (slot < 0 || offset < 0) continue;
      units[u] = *reinterpret_cast<const uint4*>(
          cache.rows + offset_of(slot, cache.layout.device_stride) + offset);
    }
    my_factor = my_slot < 0 ? kNoFactor : factor;
  }

  __device__ void store(SharedTile& tile) const {
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (int u = 0; u < kUnitsPerLane; ++u) tile.units[u * 32 + lane] = units[u];
    tile.factors[lane] = my_factor;
  }
};

/// The columns of a lane: those in one word of 4 bytes.
template <FloatType kWeights>
struct Columns {
  static constexpr int kCount = 4 / bytes_of(kWeights);
  float sum[kCount] = {};

  __device__ void add(const SharedTile& tile) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(tile.units) + threadIdx.x % 32;
#pragma unroll 8
    for (int r = 0; r < kTileRows; ++r) {
      const float factor = tile.factors[r];
      const std::uint32_t word = words[r * 32];
      if constexpr (kWeights == FloatType::kFp32) {
        sum[0] = fmaf(factor, __uint_as_float(word), sum[0]);
      } else {
        sum[0] = fmaf(factor, to_float<kWeights>(word & 0xFFFFU), sum[0]);
        sum[1] = fmaf(factor, to_float<kWeights>(word >> 16), sum[1]);
      }
    }
  }
};

__device__ void store(FloatType type, void* array, std::int64_t i, float x) {
  if (type == FloatType::kFp32) {
    static_cast<float*>(array)[i] = x;
  } else {
    static_cast<unsigned short*>(array)[i] = static_cast<unsigned short>(
        type == FloatType::kBf16 ? to_bits16<FloatType::kBf16>(x) : to_bits16<FloatType::kFp16>(x));
  }
}

template <FloatType kWeights>
__device__ void store(const Columns<kWeights>& columns,
                      FloatType type,
                      void* out,
                      std::int64_t first) {
#pragma unroll
  for (int c = 0; c < Columns<kWeights>::kCount; ++c) store(type, out, first + c, columns.sum[c]);
}

/// The strips of 128 bytes of a row.
__host__ __device__ std::int64_t num_strips(const RowLayout& layout) {
  return (layout.padded_dim * bytes_of(layout.weight_type) + kStripBytes - 1) / kStripBytes;
}

template <FloatType kWeights>
__global__ void __launch_bounds__(kThreads, 2)
    pool_long(CacheView cache, Bags bags, PlanView plan, FloatType out_type, void* out) {
  static __shared__ SharedTile shared[kWarps][2];
  SharedTile* const tiles = shared[threadIdx.x / 32];
  const int lane = static_cast<int>(threadIdx.x % 32);
  const std::int64_t strips = num_strips(cache.layout);
  for (std::int64_t item = global_thread() / 32; item < bags.num_long_bags * strips;
       item += num_threads() / 32) {
    const std::int64_t l = item / strips;
    const int strip = static_cast<int>(item - l * strips);
    const int mine = strip * kStripBytes + lane % kUnits * 16;
    const int offset = mine < cache.layout.padded_dim * bytes_of(kWeights) ? mine : -1;
    const std::int64_t bag = bags.long_bags[l];
    const std::int64_t f = bag / bags.num_examples;
    const BagFeature feature = bags.features[f];
    if (feature.pooling == Pooling::kSequence) continue;
    const auto begin = static_cast<std::uint32_t>(bags.offsets[bag]);
    const auto end = static_cast<std::uint32_t>(bags.offsets[bag + 1]);

    // Tiles of a round are on their way while `places` are those of the next, `keys` of the one
    // after it.
    const Keys first_keys(plan, begin, end);
    Keys keys(plan, begin + kRound, end);
    const Places first_places(plan, first_keys, begin);
    Tile ahead[kTiles];
#pragma unroll
    for (int k = 0; k < kTiles; ++k) {
      ahead[k].fetch(cache, offset, first_places.slot[k], first_places.factor[k]);
    }
    Places places(plan, keys, begin + kRound);
    keys = Keys(plan, begin + 2 * kRound, end);
    Columns<kWeights> columns;
#pragma unroll 1
    for (std::uint32_t first = begin; first < end; first += kRound) {
#pragma unroll
      for (int k = 0; k < kTiles; ++k) {
        SharedTile& tile = tiles[k % 2];
        ahead[k].store(tile);
        __syncwarp();  // orders memory, as the shuffles that follow would order lanes alone
        ahead[k].fetch(cache, offset, places.slot[k], places.factor[k]);
        columns.add(tile);
      }
      places = Places(plan, keys, first + 2 * kRound);
      keys = Keys(plan, first + 3 * kRound, end);
    }
    const std::int64_t column =
        (strip * 32 + lane) * static_cast<std::int64_t>(Columns<kWeights>::kCount);
    const std::int64_t row = bag - f * bags.num_examples;
    if (column < cache.layout.padded_dim) {
      store(columns, out_type, out, row * bags.row_stride + feature.column + column);
    }
  }
}

}  // namespace

void pool_long_bags(const Grids& grids, const PoolForward& operation, StreamRef stream) {
  const auto& [cache, bags, plan, out_type, out] = operation;
  if (bags.num_long_bags == 0) return;
  const std::int64_t warps = bags.num_long_bags * num_strips(cache.layout);
  const auto run = [&](auto kernel) {
    launch(kernel, grids.grid_for(warps, kWarps), stream, cache, bags, plan, out_type, out);
  };
  switch (cache.layout.weight_type) {
    case FloatType::kFp32:
      return run(pool_long<FloatType::kFp32>);
    case FloatType::kBf16:
      return run(pool_long<FloatType::kBf16>);
    case FloatType::kFp16:
      return run(pool_long<FloatType::kFp16>);
  }
}

}  // namespace satrap::backend
