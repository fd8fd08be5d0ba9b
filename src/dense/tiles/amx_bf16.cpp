#include "src/dense/tiles/bf16_pairs.h"
#include "src/dense/transpose.h"

namespace satrap::dense {
namespace {

struct AmxBf16 : Avx512Registers {};

constexpr std::int64_t kSide = 16;                   // rows of a tile, and floats of a row
constexpr std::int64_t kTileFloats = kSide * kSide;  // a pair of numbers in each
constexpr std::int64_t kTileDepth = 2 * kSide;
constexpr std::int64_t kRowBytes = kSide * sizeof(float);

/// What LDTILECFG takes (Intel's "Software Developer's Manual", LDTILECFG): eight tiles of 16 rows.
struct TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {kRowBytes, kRowBytes, kRowBytes, kRowBytes,
                                 kRowBytes, kRowBytes, kRowBytes, kRowBytes};
  std::uint8_t rows[16] = {kSide, kSide, kSide, kSide, kSide, kSide, kSide, kSide};
};

/// The thread's tiles while it exists, then again as they were: others may count on that.
class ConfiguredTiles {
 public:
  ConfiguredTiles() {
    _tile_storeconfig(&before_);
    const TileConfig own;
    _tile_loadconfig(&own);
  }
  ~ConfiguredTiles() {
    if (before_.palette == 0) {
      _tile_release();
    } else {
      _tile_loadconfig(&before_);
    }
  }
  ConfiguredTiles(const ConfiguredTiles&) = delete;
  ConfiguredTiles& operator=(const ConfiguredTiles&) = delete;

 private:
  TileConfig before_;
};

/// One side of a product: `lanes` rows of the left operand, or columns of the right one.
struct Side {
  const float* data;
  std::int64_t lane_step, depth_step;
  std::int64_t lanes, depth;

  std::int64_t strips() const { return pieces(lanes, kSide); }
  std::int64_t blocks() const { return pieces(depth, kTileDepth); }
  std::int64_t floats() const { return strips() * blocks() * kTileFloats; }
};

Side left_of(const ProductTask& task) {
  return {task.a.data, task.a.row_step, task.a.col_step, task.rows, task.depth};
}

Side right_of(const ProductTask& task) {
  return {task.b.data, task.b.col_step, task.b.row_step, task.cols, task.depth};
}

// A tile of pairs. The left operand's has a row for each lane, the right one's for each pair.
template <bool kIsLeft>
void copy_tile(const Side& side, std::int64_t lane, std::int64_t k, float* tile) {
  using Vector = Avx512Registers::Vector;
  Vector rows[kSide];
  const float* const from = side.data + lane * side.lane_step + k * side.depth_step;
  const std::int64_t lanes = side.lanes - lane, depth = side.depth - k;
  const bool along = side.depth_step == 1;
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < kSide; ++i) {
    if (along) {
      rows[i] = i < lanes ? pairs_along_depth(from + i * side.lane_step, depth) : Vector{};
    } else if (2 * i < depth) {
      const float* const even = from + 2 * i * side.depth_step;
      rows[i] =
          pairs_across_depth(even, 2 * i + 1 < depth ? even + side.depth_step : nullptr, lanes);
    } else {
      rows[i] = Vector{};
    }
  }
  if (along != kIsLeft) transpose<static_cast<std::size_t>(kSide)>(rows);
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < kSide; ++i) _mm512_store_ps(tile + i * kSide, rows[i]);
}

// All tiles, [strips, blocks of the depth], in the order in which the operand lies in memory.
template <bool kIsLeft>
[[gnu::noinline]] void copy_tiles(const Side& side, float* tiles) {
  const std::int64_t strips = side.strips(), blocks = side.blocks();
  const bool along = side.depth_step == 1;
  for (std::int64_t outer = 0; outer < (along ? strips : blocks); ++outer) {
    for (std::int64_t inner = 0; inner < (along ? blocks : strips); ++inner) {
      const std::int64_t strip = along ? outer : inner, block = along ? inner : outer;
      copy_tile<kIsLeft>(side, strip * kSide, block * kTileDepth,
                         tiles + (strip * blocks + block) * kTileFloats);
    }
  }
}

// The sums of two strips of rows and of columns, or of one: [2 * kSide, 2 * kSide].
template <bool kTwoRows, bool kTwoCols>
[[gnu::noinline]] void sum_tiles(const float* left,
                                 const float* right,
                                 std::int64_t blocks,
                                 float* sums) {
  const float* const lower = left + blocks * kTileFloats;
  const float* const further = right + blocks * kTileFloats;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  __asm__ volatile("" ::: "memory");  // GCC's loads of tiles do not say that they read memory
  for (std::int64_t at = 0; at < blocks * kTileFloats; at += kTileFloats) {
    _tile_loadd(4, left + at, kRowBytes);
    _tile_loadd(6, right + at, kRowBytes);
    if constexpr (kTwoCols) _tile_loadd(7, further + at, kRowBytes);
    if constexpr (kTwoRows) _tile_loadd(5, lower + at, kRowBytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kTwoCols) _tile_dpbf16ps(1, 4, 7);
    if constexpr (kTwoRows) _tile_dpbf16ps(2, 5, 6);
    if constexpr (kTwoRows && kTwoCols) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, 2 * kRowBytes);
  if constexpr (kTwoCols) _tile_stored(1, sums + kSide, 2 * kRowBytes);
  if constexpr (kTwoRows) _tile_stored(2, sums + 2 * kTileFloats, 2 * kRowBytes);
  if constexpr (kTwoRows && kTwoCols) {
    _tile_stored(3, sums + 2 * kTileFloats + kSide, 2 * kRowBytes);
  }
}

void sum_tiles(const float* left,
               const float* right,
               std::int64_t blocks,
               bool two_rows,
               bool two_cols,
               float* sums) {
  if (two_rows) {
    two_cols ? sum_tiles<true, true>(left, right, blocks, sums)
             : sum_tiles<true, false>(left, right, blocks, sums);
  } else {
    two_cols ? sum_tiles<false, true>(left, right, blocks, sums)
             : sum_tiles<false, false>(left, right, blocks, sums);
  }
}

std::int64_t work_floats(const ProductTask& task) {
  return left_of(task).floats() + right_of(task).floats();
}

void multiply(const ProductTask& task, float* work) {
  const Side left = left_of(task), right = right_of(task);
  const std::int64_t blocks = left.blocks();
  float* const right_tiles = work + left.floats();
  copy_tiles<true>(left, work);
  copy_tiles<false>(right, right_tiles);

  const ConfiguredTiles tiles;
  alignas(64) float sums[4 * kTileFloats];
  for (std::int64_t i = 0; i < task.rows; i += 2 * kSide) {
    for (std::int64_t j = 0; j < task.cols; j += 2 * kSide) {
      const std::int64_t rows = least(2 * kSide, task.rows - i);
      const std::int64_t cols = least(2 * kSide, task.cols - j);
      sum_tiles(work + i * blocks * kSide, right_tiles + j * blocks * kSide, blocks, rows > kSide,
                cols > kSide, sums);
      Tile tile{task.c + i * task.c_stride + j, task.c_stride, cols, false, task.end};
      if (tile.end.bias != nullptr) tile.end.bias += j;
      Tiles<AmxBf16>::finish_narrow(tile, sums, rows, 2 * kSide);
    }
  }
}

}  // namespace

const ProductTiles kAmxBf16Tiles{"AMX BF16", work_floats, multiply};

}  // namespace satrap::dense
