#include "src/dense/tiles/blocks.h"

namespace satrap::dense {
namespace {

constexpr std::int64_t kFloats = 8;
using Floats = float __attribute__((vector_size(kFloats * sizeof(float))));

struct Avx2 : Parts<Floats, kFloats> {
  static constexpr std::int64_t kVector = kFloats;
  using Vector = Floats;
  static constexpr std::int64_t kTileRows[] = {12, 6, 4};  // of 16 registers
  static constexpr std::int64_t kWidest = 2, kWidestOfStrips = 3, kStripsInPlace = 8;
  __attribute__((always_inline)) static inline Vector multiply_add(Vector sums,
                                                                   float left,
                                                                   Vector right) {
    return sums + left * right;
  }
};

}  // namespace

const ProductTiles kAvx2Tiles{"AVX2", Blocks<Avx2>::work_floats, Blocks<Avx2>::multiply};

}  // namespace satrap::dense
