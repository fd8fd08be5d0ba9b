#pragma once

#include "src/dense/aligned_buffer.h"
#include "src/dense/matrix.h"

namespace satrap::dense {

/// The end of a matrix product: out (+)= product, then out = relu(out + bias).
struct ProductEnd {
  bool accumulate = false;
  const float* bias = nullptr;  // [columns of the result], or none
  bool relu = false;            // NaN stays
};

/// Matrix products in fp32 on the calling thread, in tiles of registers (the inner kernels of Goto
/// and van de Geijn 2008, "Anatomy of High-Performance Matrix Multiplication"). The right operand
/// is copied into panels as wide as a tile. The left one is read in place, since a network's is
/// already in a near cache, or copied into strips as high as a tile if it is transposed. Bias and
/// ReLU are applied while the sums are in registers. A BLAS copies both operands, and bias and ReLU
/// take another pass over the result.
///
/// An element's sum runs in the order of the inner dimension, whatever the other sizes: a result
/// does not depend on how rows and columns are divided. Used by one thread; the copies' memory is
/// kept from product to product.
class Fp32Product {
 public:
  /// c = op(a) op(b), finished by `end`; c overlaps neither operand.
  void multiply(ConstMatrix a,
                bool transpose_a,
                ConstMatrix b,
                bool transpose_b,
                Matrix c,
                const ProductEnd& end);

 private:
  AlignedBuffer panel_, strips_;
};

}  // namespace satrap::dense
