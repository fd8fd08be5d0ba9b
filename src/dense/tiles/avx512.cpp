#include "src/dense/tiles/avx512.h"

namespace satrap::dense {
namespace {

struct Avx512 : Avx512Registers {
  static constexpr std::int64_t kStripsInPlace = 32;
  __attribute__((always_inline)) static inline Vector multiply_add(Vector sums,
                                                                   float left,
                                                                   Vector right) {
    return sums + left * right;
  }
};

}  // namespace

const ProductTiles kAvx512Tiles{"AVX-512", Blocks<Avx512>::work_floats, Blocks<Avx512>::multiply};

}  // namespace satrap::dense
