#include "src/dense/tiled_product.h"

namespace satrap::dense {
namespace {

ProductOperand operand(ConstMatrix m, bool transposed) {
  return {m.data, transposed ? 1 : m.stride, transposed ? m.stride : 1};
}

}  // namespace

#if defined(__x86_64__)
const ProductTiles& fp32_tiles(const Cpu& cpu) {
  if (cpu.has("avx512f") && cpu.has("avx512bw")) return kAvx512Tiles;
  return cpu.has("avx2") ? kAvx2Tiles : kBaseTiles;
}

const ProductTiles* bf16_tiles(const Cpu& cpu) {
  return cpu.has("avx512_bf16") && !cpu.has("amx_bf16") ? &kAvx512Bf16Tiles : nullptr;
}
#else
const ProductTiles& fp32_tiles(const Cpu&) { return kBaseTiles; }
const ProductTiles* bf16_tiles(const Cpu&) { return nullptr; }
#endif

void TiledProduct::multiply(ConstMatrix a,
                            bool transpose_a,
                            ConstMatrix b,
                            bool transpose_b,
                            Matrix c,
                            const ProductEnd& end) {
  const ProductTask task{.a = operand(a, transpose_a),
                         .b = operand(b, transpose_b),
                         .c = c.data,
                         .c_stride = c.stride,
                         .rows = c.rows,
                         .cols = c.cols,
                         .depth = transpose_a ? a.rows : a.cols,
                         .end = end};
  const std::int64_t floats = tiles_->work_floats(task);
  if (work_.size() < floats) work_ = AlignedBuffer(floats);
  tiles_->multiply(task, work_.data());
}

}  // namespace satrap::dense
