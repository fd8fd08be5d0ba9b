#include <cuda_runtime_api.h>

#include "cuda/backend/architectures.h"

namespace satrap::backend {
namespace {

constexpr int kArchitectures[] = {__CUDA_ARCH_LIST__};  // nvcc's, ascending: 800, 900

}  // namespace

int lowest_architecture() { return kArchitectures[0] / 10; }

}  // namespace satrap::backend
