#pragma once

#include <cstdint>

namespace satrap::dense {

/// A row-major matrix in somebody else's memory; rows are `stride` floats apart. Layers and models
/// pass these around and leave the numbers themselves to ops.h and gemm.h.
template <class T>
struct MatrixView {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  MatrixView() = default;
  MatrixView(T* begin, std::int64_t num_rows, std::int64_t num_cols)
      : MatrixView(begin, num_rows, num_cols, num_cols) {}
  MatrixView(T* begin, std::int64_t num_rows, std::int64_t num_cols, std::int64_t row_stride)
      : data(begin), rows(num_rows), cols(num_cols), stride(row_stride) {}

  T* row(std::int64_t r) const { return data + r * stride; }
  bool empty() const { return rows == 0 || cols == 0; }
  MatrixView columns(std::int64_t first, std::int64_t count) const {
    return {data + first, rows, count, stride};
  }
  MatrixView row_range(std::int64_t first, std::int64_t count) const {
    return {row(first), count, cols, stride};
  }

  operator MatrixView<const T>() const {  // NOLINT(google-explicit-constructor)
    return {data, rows, cols, stride};
  }
};

using Matrix = MatrixView<float>;
using ConstMatrix = MatrixView<const float>;

}  // namespace satrap::dense
