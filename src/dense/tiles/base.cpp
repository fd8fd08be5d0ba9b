#include "src/dense/tiles/blocks.h"

namespace satrap::dense {
namespace {

constexpr std::int64_t kFloats = 4;
using Floats = float __attribute__((vector_size(kFloats * sizeof(float))));

struct Base : Parts<Floats, kFloats> {
  static constexpr std::int64_t kVector = kFloats;
  using Vector = Floats;
  // For 32 registers: on ARM each factor of the left operand takes one too, and with 6 rows of 4
  // GCC 12 spills sums to the stack.
  static constexpr std::int64_t kTileRows[] = {14, 8, 6, 5};
  static constexpr std::int64_t kWidest = 4, kWidestOfStrips = 2, kStripsInPlace = 8;
  __attribute__((always_inline)) static inline Vector multiply_add(Vector sums,
                                                                   float left,
                                                                   Vector right) {
    return sums + left * right;
  }
};

}  // namespace

const ProductTiles kBaseTiles{"the build's", Blocks<Base>::work_floats, Blocks<Base>::multiply};

}  // namespace satrap::dense
