#include "src/dense/tiled_product.h"

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace satrap::dense {
namespace {

ProductOperand operand(ConstMatrix m, bool transposed) {
  return {m.data, transposed ? 1 : m.stride, transposed ? m.stride : 1};
}

#if defined(__x86_64__)
// Asks the kernel to let this process use AMX (Documentation/arch/x86/xstate.rst); before 5.16 it
// does not know the request.
bool may_use_amx() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

}  // namespace

#if defined(__x86_64__)
const ProductTiles& fp32_tiles(const Cpu& cpu) {
  if (cpu.has("avx512f") && cpu.has("avx512bw")) return kAvx512Tiles;
  return cpu.has("avx2") ? kAvx2Tiles : kBaseTiles;
}

const ProductTiles* bf16_tiles(const Cpu& cpu) {
  if (!cpu.has("avx512_bf16")) return nullptr;
  return cpu.has("amx_bf16") && may_use_amx() ? &kAmxBf16Tiles : &kAvx512Bf16Tiles;
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
