#include "src/dense/bf16_product.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include "satrap/core/error.h"

namespace satrap::dense {
namespace {

// The values of `from`, without gaps.
at::Tensor rounded(ConstMatrix from, AlignedArray<Bf16>& copy) {
  if (copy.size() < from.rows * from.cols) copy = AlignedArray<Bf16>(from.rows * from.cols);
  for (std::int64_t r = 0; r < from.rows; ++r) {
    const float* __restrict source = from.row(r);
    Bf16* __restrict target = copy.data() + r * from.cols;
    for (std::int64_t c = 0; c < from.cols; ++c) round_to_nearest(source[c], target[c]);
  }
  return at::from_blob(copy.data(), {from.rows, from.cols}, at::kBFloat16);
}

void widen(const Bf16* from, Matrix to, bool accumulate) {
  for (std::int64_t r = 0; r < to.rows; ++r) {
    const Bf16* __restrict source = from + r * to.cols;
    float* __restrict target = to.row(r);
    if (accumulate) {
      for (std::int64_t c = 0; c < to.cols; ++c) target[c] += to_float(source[c]);
    } else {
      for (std::int64_t c = 0; c < to.cols; ++c) target[c] = to_float(source[c]);
    }
  }
}

}  // namespace

void Bf16Product::multiply(ConstMatrix a,
                           bool transpose_a,
                           ConstMatrix b,
                           bool transpose_b,
                           Matrix c,
                           bool accumulate) {
  if (product_.size() < c.rows * c.cols) product_ = AlignedArray<Bf16>(c.rows * c.cols);
  try {
    const c10::InferenceMode no_autograd;
    const at::Tensor left = rounded(a, left_), right = rounded(b, right_);
    at::Tensor out = at::from_blob(product_.data(), {c.rows, c.cols}, at::kBFloat16);
    at::mm_out(out, transpose_a ? left.t() : left, transpose_b ? right.t() : right);
  } catch (const c10::Error& error) {
    throw Error(ErrorCode::kInternal, concat("libtorch: ", error.what_without_backtrace()));
  }
  widen(product_.data(), c, accumulate);
}

}  // namespace satrap::dense
