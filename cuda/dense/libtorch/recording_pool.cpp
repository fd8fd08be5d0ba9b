#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include "src/dense/libtorch/place.h"

namespace satrap::dense {

namespace allocator = c10::cuda::CUDACachingAllocator;

struct RecordingPool::Pool {
  const c10::DeviceIndex gpu;
  const at::cuda::MempoolId_t id = at::cuda::graph_pool_handle();
  bool is_used = false;
};

RecordingPool::RecordingPool(int gpu) {
  if (gpu >= 0) pool_ = std::make_unique<Pool>(Pool{.gpu = static_cast<c10::DeviceIndex>(gpu)});
}

// Each begin took a reference; one is left for the first.
RecordingPool::~RecordingPool() {
  if (pool_ && pool_->is_used) allocator::releasePool(pool_->gpu, pool_->id);
}

void RecordingPool::begin(void* stream) {
  if (!pool_) return;
  allocator::beginAllocateToPool(pool_->gpu, pool_->id,
                                 [stream](cudaStream_t other) { return other == stream; });
}

void RecordingPool::end() noexcept {
  if (!pool_) return;
  allocator::endAllocateToPool(pool_->gpu, pool_->id);
  if (pool_->is_used) allocator::releasePool(pool_->gpu, pool_->id);
  pool_->is_used = true;
}

}  // namespace satrap::dense
