#include <cuda_runtime.h>

#include "tests/support/simt/races_kernels.h"

#ifdef __has_feature
#define SIMT_HAS_FEATURE(feature) __has_feature(feature)
#else
#define SIMT_HAS_FEATURE(feature) 0
#endif

namespace race_kernels {

bool kernels_tell() {
#if defined(__SANITIZE_THREAD__) || SIMT_HAS_FEATURE(thread_sanitizer)
  return true;
#else
  return false;
#endif
}

__global__ void store(float* to, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += 32) to[i] = 1.0F;
}

__global__ void store_bytes(unsigned char* to, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += 32) to[i] = 1;
}

__global__ void load(const float* from, int count, float* sums) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += 32) sums[i] += from[i];
}

__global__ void count_up(unsigned* counter) { atomicAdd(counter, 1U); }

__global__ void store_shared(float* to) {
  static __shared__ float shared[32];
  shared[threadIdx.x] = 1.0F;
  __syncthreads();
  to[threadIdx.x] = shared[31 - threadIdx.x];
}

}  // namespace race_kernels
