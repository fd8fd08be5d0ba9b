#pragma once

#include <memory>

#include <ATen/ATen.h>

namespace satrap::dense {

/// While it lives, libtorch queues on `stream` of a GPU what the calling thread computes there.
/// Does nothing for the host's memory (gpu -1). In the library with CUDA: cuda/dense/libtorch.
class OnStream {
 public:
  OnStream(int gpu, void* stream);
  ~OnStream();
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;

 private:
  struct Guard;
  std::unique_ptr<Guard> guard_;
};

/// The memory of intermediate results of recorded work, taken from the GPU once. Work that is
/// recorded later takes the same: it runs when that is done.
class RecordingPool {
 public:
  explicit RecordingPool(int gpu);
  ~RecordingPool();
  RecordingPool(const RecordingPool&) = delete;
  RecordingPool& operator=(const RecordingPool&) = delete;

  /// Between the two, tensors for `stream` are in this memory.
  void begin(void* stream);
  void end() noexcept;

 private:
  struct Pool;
  std::unique_ptr<Pool> pool_;  // null for the host's memory
};

inline at::Device place_of(int gpu) {
  return gpu < 0 ? at::Device(at::kCPU) : at::Device(at::kCUDA, static_cast<at::DeviceIndex>(gpu));
}

/// A tensor on fp32 memory there.
inline at::Tensor tensor_at(at::Device place,
                            const float* values,
                            at::IntArrayRef sizes,
                            at::IntArrayRef strides) {
  return at::for_blob(const_cast<float*>(values), sizes)
      .strides(strides)
      .options(at::TensorOptions(at::kFloat).device(place))
      .target_device(place)
      .make_tensor();
}
inline at::Tensor tensor_at(at::Device place, const float* values, std::int64_t size) {
  return tensor_at(place, values, {size}, {1});
}

}  // namespace satrap::dense
