#include "src/dense/gemm.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include "satrap/core/error.h"

// The Fortran BLAS interface, which libtorch_cpu exports. Called directly because a product through
// at::mm_out costs 4 to 5 µs in dispatch and tensor views, some 2 % of a DLRM step.
extern "C" void sgemm_(const char* transa,
                       const char* transb,
                       const int* m,
                       const int* n,
                       const int* k,
                       const float* alpha,
                       const float* a,
                       const int* lda,
                       const float* b,
                       const int* ldb,
                       const float* beta,
                       float* c,
                       const int* ldc);

namespace satrap::dense {
namespace {

constexpr std::int64_t kVector = 16;  // floats in a cache line, and in the widest register

// c (+)= op(a) op(b), row-major: the column-major BLAS computes the transposed product.
void multiply_fp32(ConstMatrix a,
                   bool transpose_a,
                   ConstMatrix b,
                   bool transpose_b,
                   Matrix c,
                   bool accumulate) {
  const int m = static_cast<int>(c.cols), n = static_cast<int>(c.rows);
  const int k = static_cast<int>(transpose_a ? a.rows : a.cols);
  const int lda = static_cast<int>(std::max<std::int64_t>(b.stride, 1));
  const int ldb = static_cast<int>(std::max<std::int64_t>(a.stride, 1));
  const int ldc = static_cast<int>(std::max<std::int64_t>(c.stride, 1));
  const float alpha = 1.0F, beta = accumulate ? 1.0F : 0.0F;
  sgemm_(transpose_b ? "T" : "N", transpose_a ? "T" : "N", &m, &n, &k, &alpha, b.data, &lda, a.data,
         &ldb, &beta, c.data, &ldc);
}

at::Tensor tensor_of(ConstMatrix m) {
  return at::from_blob(const_cast<float*>(m.data), {m.rows, m.cols}, {m.stride, 1}, at::kFloat);
}

void multiply_bf16(ConstMatrix a,
                   bool transpose_a,
                   ConstMatrix b,
                   bool transpose_b,
                   Matrix c,
                   bool accumulate) {
  try {
    const c10::InferenceMode no_autograd;
    at::Tensor left = tensor_of(a).to(at::kBFloat16), right = tensor_of(b).to(at::kBFloat16);
    at::Tensor product = at::mm(transpose_a ? left.t() : left, transpose_b ? right.t() : right);
    at::Tensor out = tensor_of(c);
    if (accumulate) {
      out.add_(product);
    } else {
      out.copy_(product);
    }
  } catch (const c10::Error& error) {
    throw Error(ErrorCode::kInternal, concat("libtorch: ", error.what_without_backtrace()));
  }
}

// to (+)= from^T, a cache line of either at a time.
void transpose(ConstMatrix from, Matrix to, bool accumulate) {
  for (std::int64_t r0 = 0; r0 < to.rows; r0 += kVector) {
    const std::int64_t r1 = std::min(to.rows, r0 + kVector);
    for (std::int64_t c0 = 0; c0 < to.cols; c0 += kVector) {
      const std::int64_t c1 = std::min(to.cols, c0 + kVector);
      for (std::int64_t r = r0; r < r1; ++r) {
        float* target = to.row(r);
        for (std::int64_t c = c0; c < c1; ++c) {
          target[c] = from.data[c * from.stride + r] + (accumulate ? target[c] : 0.0F);
        }
      }
    }
  }
}

constexpr std::int64_t kBlockRows = 256;  // of a result computed in parallel

}  // namespace

void use_one_thread() {
  if (at::get_num_threads() != 1) at::set_num_threads(1);
}

// MKL is 10 to 80 % slower where the columns of the result are not whole vectors: DLRM's
// interaction is 367 wide, its numeric input 13. Where the rows are, the transposed product is
// faster.
void Gemm::multiply_transposed(ConstMatrix a,
                               bool transpose_a,
                               ConstMatrix b,
                               bool transpose_b,
                               Matrix c,
                               bool accumulate) {
  if (transposed_.size() < c.rows * c.cols) transposed_ = AlignedBuffer(c.rows * c.cols);
  const Matrix result(transposed_.data(), c.cols, c.rows);
  multiply_fp32(b, !transpose_b, a, !transpose_a, result, false);
  transpose(result, c, accumulate);
}

void Gemm::multiply(ConstMatrix a,
                    bool transpose_a,
                    ConstMatrix b,
                    bool transpose_b,
                    Matrix c,
                    bool accumulate) {
  const auto block = [&](ConstMatrix a_part, Matrix c_part) {
    if (precision_ == Precision::kBf16) {
      multiply_bf16(a_part, transpose_a, b, transpose_b, c_part, accumulate);
    } else {
      multiply_fp32(a_part, transpose_a, b, transpose_b, c_part, accumulate);
    }
  };
  if (pool_ == nullptr && precision_ == Precision::kFp32 && c.cols % kVector != 0 &&
      c.rows % kVector == 0 && c.cols > 1) {
    multiply_transposed(a, transpose_a, b, transpose_b, c, accumulate);
    return;
  }
  if (pool_ == nullptr || c.rows <= kBlockRows) {
    block(a, c);
    return;
  }
  pool_->parallel_for((c.rows + kBlockRows - 1) / kBlockRows, [&](std::int64_t i) {
    use_one_thread();
    const std::int64_t first = i * kBlockRows, count = std::min(kBlockRows, c.rows - first);
    block(transpose_a ? a.columns(first, count) : a.row_range(first, count),
          c.row_range(first, count));
  });
}

void Gemm::multiply_nt(ConstMatrix x, ConstMatrix w, Matrix y) {
  SATRAP_CHECK(x.rows == y.rows && x.cols == w.cols && w.rows == y.cols, "x ", x.rows, "x", x.cols,
               ", w ", w.rows, "x", w.cols, ", y ", y.rows, "x", y.cols);
  multiply(x, false, w, true, y, false);
}

void Gemm::multiply_nn(ConstMatrix dy, ConstMatrix w, Matrix dx) {
  SATRAP_CHECK(dy.rows == dx.rows && dy.cols == w.rows && w.cols == dx.cols, "dy ", dy.rows, "x",
               dy.cols, ", w ", w.rows, "x", w.cols, ", dx ", dx.rows, "x", dx.cols);
  multiply(dy, false, w, false, dx, false);
}

void Gemm::multiply_tn(ConstMatrix dy, ConstMatrix x, Matrix dw, bool accumulate) {
  SATRAP_CHECK(dy.rows == x.rows && dy.cols == dw.rows && x.cols == dw.cols, "dy ", dy.rows, "x",
               dy.cols, ", x ", x.rows, "x", x.cols, ", dw ", dw.rows, "x", dw.cols);
  multiply(dy, true, x, false, dw, accumulate);
}

}  // namespace satrap::dense
