#include "src/dense/gemm.h"

#include <algorithm>

#include "satrap/core/error.h"
#include "src/dense/libtorch.h"
#include "src/dense/ops.h"

namespace satrap::dense {
namespace {

constexpr std::int64_t kBlockRows = 256;  // of a result computed in parallel

const ProductTiles* tiles_of(Precision precision) {
  static const Cpu cpu = inspect_cpu();
  return precision == Precision::kBf16 ? bf16_tiles(cpu) : &fp32_tiles(cpu);
}

}  // namespace

Gemm::Gemm(Precision precision) : tiles_(tiles_of(precision)) {
  if (tiles_ == nullptr) libtorch();
}

void Gemm::multiply(ConstMatrix a,
                    bool transpose_a,
                    ConstMatrix b,
                    bool transpose_b,
                    Matrix c,
                    const ProductEnd& end) {
  const std::int64_t num_blocks =
      pool_ == nullptr ? 1 : std::max<std::int64_t>(1, (c.rows + kBlockRows - 1) / kBlockRows);
  const auto size = static_cast<std::size_t>(num_blocks);
  if (tiles_ == nullptr) {
    if (bf16_.size() < size) bf16_.resize(size);
  } else {
    while (tiled_.size() < size) tiled_.emplace_back(*tiles_);
  }
  const auto block = [&](std::int64_t i, ConstMatrix a_part, Matrix c_part) {
    const auto own = static_cast<std::size_t>(i);
    if (tiles_ == nullptr) {
      bf16_[own].multiply(a_part, transpose_a, b, transpose_b, c_part, end.accumulate);
      if (end.bias != nullptr) add_bias(c_part, end.bias, end.relu);
    } else {
      tiled_[own].multiply(a_part, transpose_a, b, transpose_b, c_part, end);
    }
  };
  if (num_blocks <= 1) {
    block(0, a, c);
    return;
  }
  pool_->parallel_for(num_blocks, [&](std::int64_t i) {
    const std::int64_t first = i * kBlockRows, count = std::min(kBlockRows, c.rows - first);
    block(i, transpose_a ? a.columns(first, count) : a.row_range(first, count),
          c.row_range(first, count));
  });
}

void Gemm::multiply_nt(ConstMatrix x, ConstMatrix w, Matrix y, const ProductEnd& end) {
  SATRAP_CHECK(x.rows == y.rows && x.cols == w.cols && w.rows == y.cols, "x ", x.rows, "x", x.cols,
               ", w ", w.rows, "x", w.cols, ", y ", y.rows, "x", y.cols);
  SATRAP_CHECK(end.bias != nullptr || !end.relu, "a product with ReLU and no bias");
  multiply(x, false, w, true, y, end);
}

void Gemm::multiply_nn(ConstMatrix dy, ConstMatrix w, Matrix dx) {
  SATRAP_CHECK(dy.rows == dx.rows && dy.cols == w.rows && w.cols == dx.cols, "dy ", dy.rows, "x",
               dy.cols, ", w ", w.rows, "x", w.cols, ", dx ", dx.rows, "x", dx.cols);
  multiply(dy, false, w, false, dx, {});
}

void Gemm::multiply_tn(ConstMatrix dy, ConstMatrix x, Matrix dw, bool accumulate) {
  SATRAP_CHECK(dy.rows == x.rows && dy.cols == dw.rows && x.cols == dw.cols, "dy ", dy.rows, "x",
               dy.cols, ", x ", x.rows, "x", x.cols, ", dw ", dw.rows, "x", dw.cols);
  multiply(dy, true, x, false, dw, {.accumulate = accumulate});
}

}  // namespace satrap::dense
