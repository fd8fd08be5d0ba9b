#pragma once

#include <vector>

#include "satrap/core/thread_pool.h"
#include "satrap/dense/precision.h"
#include "src/dense/bf16_product.h"
#include "src/dense/matrix.h"
#include "src/dense/tiled_product.h"

namespace satrap::dense {

/// The three matrix products of a linear layer y = x W^T, on the calling thread alone. With kBf16
/// the operands are rounded to bf16; sums are fp32. On a CPU without bf16_tiles libtorch computes
/// them, and the product is rounded too (as autocast does).
///
/// With a pool, the rows of the result are computed in blocks of a fixed size, in parallel; only
/// for callers that are not themselves inside a loop of the pool.
class Gemm {
 public:
  /// Throws Error(kUnavailable) if libtorch is needed and missing.
  explicit Gemm(Precision precision);
  void set_pool(ThreadPool* pool) { pool_ = pool; }

  /// y[n,m] (+)= x[n,k] w[m,k]^T, then `end`; ReLU requires a bias.
  void multiply_nt(ConstMatrix x, ConstMatrix w, Matrix y, const ProductEnd& end = {});
  void multiply_nn(ConstMatrix dy, ConstMatrix w, Matrix dx);  // dx[n,k] = dy[n,m] w[m,k]
  void multiply_tn(ConstMatrix dy,
                   ConstMatrix x,
                   Matrix dw,
                   bool accumulate);  // dw[m,k] (+)= dy[n,m]^T x[n,k]

 private:
  void multiply(ConstMatrix a,
                bool transpose_a,
                ConstMatrix b,
                bool transpose_b,
                Matrix c,
                const ProductEnd& end);

  const ProductTiles* tiles_;  // null: libtorch
  ThreadPool* pool_ = nullptr;
  std::vector<TiledProduct> tiled_;  // of each block
  std::vector<Bf16Product> bf16_;
};

}  // namespace satrap::dense
