#include "src/embedding/device_columns.h"

#include <algorithm>

#include "src/embedding/device_array.h"

namespace satrap::embedding {

/// Whether kernels can read and write a matrix of the host as it is.
bool DeviceColumns::is_usable(const float* values, std::int64_t stride) const {
  return device_.is_host() && on_host_.output_width == on_device_.output_width &&
         stride == on_device_.output_width && is_aligned_for_kernels(values);
}

std::int64_t DeviceColumns::bytes_of(std::int64_t num_examples) const {
  return num_examples * on_device_.output_width * static_cast<std::int64_t>(sizeof(float));
}

float* DeviceColumns::staging(std::int64_t num_examples) {
  make_room(staging_, device_, backend::Place::kPinnedHost, bytes_of(num_examples),
            "the pooled rows of a batch");
  return reinterpret_cast<float*>(staging_.data());
}

float* DeviceColumns::on_device(std::int64_t num_examples) {
  if (device_.is_host()) return staging(num_examples);
  make_room(memory_, device_, backend::Place::kDevice, bytes_of(num_examples),
            "the pooled rows of a batch");
  return reinterpret_cast<float*>(memory_.data());
}

float* DeviceColumns::to_write(float* out, std::int64_t stride, std::int64_t num_examples) {
  return is_usable(out, stride) ? out : on_device(num_examples);
}

void DeviceColumns::finish(float* out,
                           std::int64_t stride,
                           std::int64_t num_examples,
                           const backend::Stream& stream) {
  if (is_usable(out, stride)) return stream.wait_until_idle();
  const float* const written = staging(num_examples);
  if (!device_.is_host()) {
    device_.copy(staging_.data(), memory_.data(), bytes_of(num_examples), stream);
  }
  stream.wait_until_idle();
  copy_columns(on_device_, written, on_device_.output_width, on_host_, out, stride, num_examples,
               pool_);
}

const float* DeviceColumns::to_read(const float* gradient,
                                    std::int64_t num_examples,
                                    const backend::Stream& stream) {
  if (is_usable(gradient, on_host_.output_width)) return gradient;
  float* const padded = staging(num_examples);
  std::fill_n(padded, num_examples * on_device_.output_width, 0.0F);
  copy_columns(on_host_, gradient, on_host_.output_width, on_device_, padded,
               on_device_.output_width, num_examples, pool_);
  if (device_.is_host()) return padded;
  float* const copy = on_device(num_examples);
  device_.copy(copy, padded, bytes_of(num_examples), stream);
  return copy;
}

}  // namespace satrap::embedding
