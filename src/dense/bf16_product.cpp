#include "src/dense/bf16_product.h"

#include <stdexcept>

#include "satrap/core/error.h"
#include "src/dense/libtorch.h"

namespace satrap::dense {
namespace {

// The values of `from`, without gaps.
Libtorch::Operand rounded(ConstMatrix from, bool transposed, AlignedArray<Bf16>& copy) {
  if (copy.size() < from.rows * from.cols) copy = AlignedArray<Bf16>(from.rows * from.cols);
  for (std::int64_t r = 0; r < from.rows; ++r) {
    const float* __restrict source = from.row(r);
    Bf16* __restrict target = copy.data() + r * from.cols;
    for (std::int64_t c = 0; c < from.cols; ++c) round_to_nearest(source[c], target[c]);
  }
  return {copy.data(), from.rows, from.cols, transposed};
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
  const Libtorch& library = libtorch();
  try {
    library.multiply(rounded(a, transpose_a, left_), rounded(b, transpose_b, right_),
                     product_.data());
  } catch (const std::runtime_error& error) {
    throw Error(ErrorCode::kInternal, concat("libtorch: ", error.what()));
  }
  widen(product_.data(), c, accumulate);
}

}  // namespace satrap::dense
