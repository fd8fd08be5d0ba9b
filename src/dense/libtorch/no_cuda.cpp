#include <stdexcept>

#include "src/dense/libtorch/place.h"

namespace satrap::dense {

struct OnStream::Guard {};

OnStream::OnStream(int gpu, void*) {
  if (gpu >= 0) throw std::runtime_error("this library has no CUDA kernels");
}
OnStream::~OnStream() = default;

struct RecordedMemory::Pool {};

RecordedMemory::RecordedMemory(int) {}
RecordedMemory::~RecordedMemory() = default;
void RecordedMemory::begin(void*) {}
void RecordedMemory::end() noexcept {}

}  // namespace satrap::dense
