#pragma once

#include "satrap/core/cpu.h"
#include "src/dense/aligned_buffer.h"
#include "src/dense/matrix.h"
#include "src/dense/product_tiles.h"

namespace satrap::dense {

/// The tiles that are fastest on this CPU.
const ProductTiles& fp32_tiles(const Cpu& cpu);
/// Tiles for operands that are rounded to bf16. Null: this CPU has no instructions for it. Lets
/// this process use AMX if the CPU has it.
const ProductTiles* bf16_tiles(const Cpu& cpu);

/// Matrix products on the calling thread, in tiles of registers (the inner kernels of Goto and van
/// de Geijn 2008, "Anatomy of High-Performance Matrix Multiplication"). Bias and ReLU are applied
/// while the sums are in registers. Used by one thread; memory for copies of the operands is kept
/// from product to product.
class TiledProduct {
 public:
  explicit TiledProduct(const ProductTiles& tiles) : tiles_(&tiles) {}

  /// c = op(a) op(b), finished by `end`; c overlaps neither operand.
  void multiply(ConstMatrix a,
                bool transpose_a,
                ConstMatrix b,
                bool transpose_b,
                Matrix c,
                const ProductEnd& end);

 private:
  const ProductTiles* tiles_;
  AlignedBuffer work_;
};

}  // namespace satrap::dense
