#include "satrap/backend/memory.h"

#include <utility>

#include <cuda_runtime_api.h>

#include "cuda/backend/check.h"
#include "satrap/core/log.h"

namespace satrap::backend {

void complain(cudaError_t error, const char* call) {
  if (error != cudaSuccess) log_error("{}: {}", call, cudaGetErrorName(error));
}

Memory::Memory(Place place, std::int64_t bytes, const char* what) : bytes_(bytes), place_(place) {
  SATRAP_CHECK(bytes >= 0, what, ": ", bytes, " bytes");
  if (bytes == 0) return;
  void* data = nullptr;
  const auto size = static_cast<std::size_t>(bytes);
  const bool device = place == Place::kDevice;
  const cudaError_t error =
      device ? cudaMalloc(&data, size) : cudaHostAlloc(&data, size, cudaHostAllocDefault);
  if (error == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());  // it is not sticky, but remembered
    std::size_t free_bytes = 0, total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    throw Error(ErrorCode::kUnavailable,
                device ? concat(what, " needs ", bytes, " bytes of device memory; ", free_bytes,
                                " of ", total_bytes, " are free")
                       : concat(what, " needs ", bytes, " bytes of pinned host memory"));
  }
  check(error, device ? "cudaMalloc" : "cudaHostAlloc");
  data_ = static_cast<std::byte*>(data);
}

Memory::~Memory() {
  if (data_ == nullptr) return;
  if (place_ == Place::kDevice) {
    complain(cudaFree(data_), "cudaFree");
  } else {
    complain(cudaFreeHost(data_), "cudaFreeHost");
  }
}

Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      place_(other.place_) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(place_, other.place_);
  return *this;
}

void copy(void* to, const void* from, std::int64_t bytes, StreamRef stream) {
  if (bytes == 0) return;
  check(
      cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, native(stream)),
      "cudaMemcpyAsync");
}

void fill(void* memory, int byte, std::int64_t bytes, StreamRef stream) {
  if (bytes == 0) return;
  check(cudaMemsetAsync(memory, byte, static_cast<std::size_t>(bytes), native(stream)),
        "cudaMemsetAsync");
}

}  // namespace satrap::backend
