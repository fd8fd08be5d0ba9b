#pragma once

#include <cstdint>

#include "satrap/core/half.h"
#include "src/dense/aligned_buffer.h"
#include "src/dense/matrix.h"

namespace satrap::dense {

/// Matrix products in bf16, by libtorch on the calling thread: operands and product are rounded to
/// bf16 (as autocast does), sums are fp32. Twice as fast as fp32 on CPUs that multiply bf16 at full
/// width, half as fast on some that only nominally have the instructions. Used by one thread; the
/// rounded copies are kept from product to product.
class Bf16Product {
 public:
  // c (+)= op(a) op(b)
  void multiply(ConstMatrix a,
                bool transpose_a,
                ConstMatrix b,
                bool transpose_b,
                Matrix c,
                bool accumulate);

 private:
  AlignedArray<Bf16> left_, right_, product_;  // grow to the largest
};

}  // namespace satrap::dense
