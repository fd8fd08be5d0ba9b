#include "bench/backend/cuda_hooks.h"

#include <cuda_runtime_api.h>

#include "satrap/core/error.h"

namespace satrap::bench {
namespace {

void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw Error(ErrorCode::kUnavailable,
              concat(call, ": ", cudaGetErrorName(error), ": ", cudaGetErrorString(error)));
}

class FetchGranularity final : public Setting {
 public:
  explicit FetchGranularity(std::int64_t bytes) {
    check(cudaDeviceGetLimit(&before_, cudaLimitMaxL2FetchGranularity), "cudaDeviceGetLimit");
    check(cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, static_cast<std::size_t>(bytes)),
          "cudaDeviceSetLimit");
  }
  ~FetchGranularity() override {
    static_cast<void>(cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, before_));
  }
  FetchGranularity(const FetchGranularity&) = delete;
  FetchGranularity& operator=(const FetchGranularity&) = delete;

 private:
  std::size_t before_ = 0;
};

}  // namespace

bool times_are_of_a_gpu() { return true; }

std::unique_ptr<Setting> set_fetch_granularity(std::int64_t bytes) {
  return std::make_unique<FetchGranularity>(bytes);
}

}  // namespace satrap::bench
