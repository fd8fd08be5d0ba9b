#include <stdexcept>

#include "src/dense/libtorch/place.h"

namespace satrap::dense {

struct OnStream::Guard {};

OnStream::OnStream(int gpu, void*) {
  if (gpu >= 0) throw std::runtime_error("this library has no CUDA kernels");
}
OnStream::~OnStream() = default;

struct RecordingPool::Pool {};

RecordingPool::RecordingPool(int) {}
RecordingPool::~RecordingPool() = default;
void RecordingPool::begin(void*) {}
void RecordingPool::end() noexcept {}

}  // namespace satrap::dense
