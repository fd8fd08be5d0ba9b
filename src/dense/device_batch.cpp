#include "src/dense/device_batch.h"

#include <algorithm>

#include "satrap/core/error.h"

namespace satrap::dense {

DeviceBatch::DeviceBatch(backend::Device& device,
                         const backend::Stream& stream,
                         const InputShape& shape,
                         const FieldColumns& columns)
    : device_(device),
      stream_(stream),
      columns_(columns),
      num_numeric_(shape.num_numeric),
      num_labels_(shape.num_labels()),
      num_outputs_(shape.num_outputs()) {}

ConstMatrix DeviceBatch::numeric(const ConstFloatMatrix& from,
                                 std::int64_t rows,
                                 Staging& staging) {
  return numbers(from, rows, num_numeric_, numeric_, staging, "numeric input");
}

ConstMatrix DeviceBatch::labels(const ConstFloatMatrix& from, std::int64_t rows, Staging& staging) {
  return numbers(from, rows, num_labels_, labels_, staging, "labels");
}

ConstMatrix DeviceBatch::weights(const ConstFloatMatrix& from,
                                 std::int64_t rows,
                                 Staging& staging) {
  if (from.data == nullptr) return {};
  return numbers(from, rows, num_labels_, weights_, staging, "weights");
}

float* DeviceBatch::room(backend::Memory& memory, std::int64_t rows, std::int64_t cols) {
  make_room(memory, device_, backend::Place::kDevice, bytes_of(rows * cols),
            "a batch of the network");
  return reinterpret_cast<float*>(memory.data());
}

ConstMatrix DeviceBatch::numbers(const ConstFloatMatrix& from,
                                 std::int64_t rows,
                                 std::int64_t cols,
                                 backend::Memory& memory,
                                 Staging& staging,
                                 const char* what) {
  const ConstMatrix host(host_values(from, rows, cols, what), rows, cols, from.stride);
  if (device_.is_host() || host.empty()) return host;
  float* const staged = staging.take<float>(rows * cols);
  for (std::int64_t r = 0; r < rows; ++r) std::copy_n(host.row(r), cols, staged + r * cols);
  float* const to = room(memory, rows, cols);
  device_.copy(to, staged, bytes_of(rows * cols), stream_);
  return {to, rows, cols};
}

ConstMatrix DeviceBatch::pooled(const ConstFloatMatrix& from, std::int64_t rows, Staging& staging) {
  const std::int64_t width = columns_.device_width();
  if (from.place == backend::Place::kDevice) {
    SATRAP_CHECK(from.rows == rows && from.cols == width, "pooled input: ", rows, " rows of ",
                 width, " values wanted, got ", from.rows, " of ", from.cols);
    return {static_cast<const float*>(from.data), rows, width, from.stride};
  }
  if (columns_.host_width() == width) {
    return numbers(from, rows, width, pooled_, staging, "pooled input");
  }
  float* const staged = staging.take<float>(rows * width);
  columns_.to_device({host_values(from, rows, columns_.host_width(), "pooled input"), rows,
                      columns_.host_width(), from.stride},
                     staged);
  float* const to = room(pooled_, rows, width);
  device_.copy(to, staged, bytes_of(rows * width), stream_);
  return {to, rows, width};
}

Matrix DeviceBatch::grad_pooled(const FloatMatrix& to, std::int64_t rows) {
  const std::int64_t width = columns_.device_width();
  if (to.place == backend::Place::kDevice) {
    SATRAP_CHECK(to.rows == rows && to.cols == width, "gradient of pooled rows: ", rows,
                 " rows of ", width, " values wanted, got ", to.rows, " of ", to.cols);
    return {static_cast<float*>(to.data), rows, width, to.stride};
  }
  if (is_in_reach(to)) {
    return {host_values(to, rows, width, "gradient of pooled rows"), rows, width, to.stride};
  }
  return {room(grad_pooled_, rows, width), rows, width};
}

}  // namespace satrap::dense
