#pragma once

#include <cstdint>

namespace satrap::dense {

/// The bytes of so many floats.
constexpr std::int64_t bytes_of(std::int64_t count) {
  return count * static_cast<std::int64_t>(sizeof(float));
}

/// A row-major matrix in memory owned elsewhere; rows are `stride` floats apart. Layers and models
/// only pass these around; ops.h and gemm.h do the arithmetic.
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

/// One matrix, or two with as many rows that are read as one: the columns of `left`, then those of
/// `right`, which is empty if there is just one. A layer reads its input in place, so two outputs
/// need no copy into one matrix.
template <class T>
struct JoinedView {
  MatrixView<T> left, right;

  template <class U>
  JoinedView(MatrixView<U> whole) : left(whole) {}  // NOLINT(google-explicit-constructor)
  JoinedView(MatrixView<T> first, MatrixView<T> second)
      : left(first.cols > 0 ? first : second), right(first.cols > 0 ? second : MatrixView<T>()) {}

  bool is_split() const { return right.cols > 0; }
  std::int64_t rows() const { return left.rows; }
  std::int64_t cols() const { return left.cols + right.cols; }
};

using Joined = JoinedView<float>;
using ConstJoined = JoinedView<const float>;

}  // namespace satrap::dense
