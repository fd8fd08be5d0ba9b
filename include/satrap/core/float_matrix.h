#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "satrap/core/float_type.h"

namespace satrap {

/// The place of memory: the host, the host and reachable by a device, or a device.
enum class Place : std::uint8_t { kHost, kPinnedHost, kDevice };

/// A row-major matrix in memory that somebody else owns: an input, an output or a gradient of a
/// step, one row per example. Copied freely; does not keep the memory alive.
template <class Data>  // void or const void
struct FloatMatrixOf {
  Data* data = nullptr;
  FloatType type = FloatType::kFp32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;  // elements from one row to the next; those past `cols` are not touched
  Place place = Place::kHost;

  template <class Const>
    requires std::is_same_v<Const, const Data>
  operator FloatMatrixOf<Const>() const  // NOLINT(google-explicit-constructor)
  {
    return {data, type, rows, cols, stride, place};
  }
};

using FloatMatrix = FloatMatrixOf<void>;
using ConstFloatMatrix = FloatMatrixOf<const void>;

/// The first value of an fp32 matrix of this shape in host memory. Throws Error(kInternal), with
/// the name `what`, if it is another one. A matrix without values has any number of rows.
const float* host_values(const ConstFloatMatrix& matrix,
                         std::int64_t rows,
                         std::int64_t cols,
                         const char* what);
float* host_values(const FloatMatrix& matrix,
                   std::int64_t rows,
                   std::int64_t cols,
                   const char* what);

/// Values [rows, cols] in host memory, without padding between rows.
FloatMatrix host_matrix(std::span<float> values, std::int64_t rows, std::int64_t cols);
ConstFloatMatrix host_matrix(std::span<const float> values, std::int64_t rows, std::int64_t cols);

/// Owns such values. Reused from step to step: does not allocate once it has had its largest shape.
class HostMatrix {
 public:
  HostMatrix() = default;
  HostMatrix(std::int64_t rows, std::int64_t cols) { resize(rows, cols); }

  /// The values are undefined afterwards.
  void resize(std::int64_t rows, std::int64_t cols);

  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  std::vector<float>& values() { return values_; }
  const std::vector<float>& values() const { return values_; }

  /// Valid until the next resize.
  FloatMatrix view() { return host_matrix(std::span(values_), rows_, cols_); }
  ConstFloatMatrix view() const { return host_matrix(std::span(values_), rows_, cols_); }

  /// `count` columns from `first` on, of all rows.
  FloatMatrix columns(std::int64_t first, std::int64_t count);

 private:
  std::int64_t rows_ = 0, cols_ = 0;
  std::vector<float> values_;  // [rows, cols]
};

}  // namespace satrap
