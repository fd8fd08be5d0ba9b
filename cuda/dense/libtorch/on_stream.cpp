#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "src/dense/libtorch/place.h"

namespace satrap::dense {

struct OnStream::Guard {
  explicit Guard(c10::cuda::CUDAStream stream) : guard(stream) {}
  c10::cuda::CUDAStreamGuard guard;  // and the device
};

OnStream::OnStream(int gpu, void* stream) {
  if (gpu < 0) return;
  guard_ = std::make_unique<Guard>(c10::cuda::getStreamFromExternal(
      static_cast<cudaStream_t>(stream), static_cast<c10::DeviceIndex>(gpu)));
}
OnStream::~OnStream() = default;

}  // namespace satrap::dense
