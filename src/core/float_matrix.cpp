#include "satrap/core/float_matrix.h"

#include "satrap/core/error.h"

namespace satrap {
namespace {

template <class Data>
void check(const FloatMatrixOf<Data>& matrix,
           std::int64_t rows,
           std::int64_t cols,
           const char* what) {
  if (rows * cols == 0 && matrix.rows * matrix.cols == 0) return;
  SATRAP_CHECK(matrix.rows == rows && matrix.cols == cols && matrix.stride >= cols, what, ": ",
               rows, " rows of ", cols, " values wanted, got ", matrix.rows, " of ", matrix.cols,
               " with stride ", matrix.stride);
  SATRAP_CHECK(matrix.type == FloatType::kFp32, what, ": fp32 wanted, got ", name_of(matrix.type));
  SATRAP_CHECK(matrix.place != Place::kDevice, what, ": is in the memory of a device");
}

}  // namespace

const float* host_values(const ConstFloatMatrix& matrix,
                         std::int64_t rows,
                         std::int64_t cols,
                         const char* what) {
  check(matrix, rows, cols, what);
  return static_cast<const float*>(matrix.data);
}

float* host_values(const FloatMatrix& matrix,
                   std::int64_t rows,
                   std::int64_t cols,
                   const char* what) {
  check(matrix, rows, cols, what);
  return static_cast<float*>(matrix.data);
}

FloatMatrix host_matrix(std::span<float> values, std::int64_t rows, std::int64_t cols) {
  SATRAP_CHECK(std::ssize(values) == rows * cols, values.size(), " values for a matrix of ", rows,
               " rows of ", cols);
  return {values.data(), FloatType::kFp32, rows, cols, cols, Place::kHost};
}

ConstFloatMatrix host_matrix(std::span<const float> values, std::int64_t rows, std::int64_t cols) {
  SATRAP_CHECK(std::ssize(values) == rows * cols, values.size(), " values for a matrix of ", rows,
               " rows of ", cols);
  return {values.data(), FloatType::kFp32, rows, cols, cols, Place::kHost};
}

void HostMatrix::resize(std::int64_t rows, std::int64_t cols) {
  SATRAP_CHECK(rows >= 0 && cols >= 0, "a matrix of ", rows, " rows of ", cols);
  values_.resize(static_cast<std::size_t>(rows * cols));
  rows_ = rows;
  cols_ = cols;
}

FloatMatrix HostMatrix::columns(std::int64_t first, std::int64_t count) {
  SATRAP_CHECK(first >= 0 && count >= 0 && first + count <= cols_, "columns ", first, " + ", count,
               " of ", cols_);
  FloatMatrix part = view();
  if (part.data != nullptr) part.data = values_.data() + first;
  part.cols = count;
  return part;
}

}  // namespace satrap
