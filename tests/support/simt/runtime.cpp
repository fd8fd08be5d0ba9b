#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include <cuda_runtime_api.h>

#include "tests/support/simt/counts.h"
#include "tests/support/simt/device.h"
#include "tests/support/simt/machine.h"

namespace {

constexpr std::size_t kTotalBytes = std::size_t{1} << 30;
constexpr int kMultiprocessors = 1;

/// Calls of several threads come one after the other; work runs in the thread that waits for it.
using Turn = std::lock_guard<std::recursive_mutex>;
std::recursive_mutex& mutex() {
  static auto& instance = *new std::recursive_mutex;
  return instance;
}

simt::Device& device() {
  static simt::Device& instance = *new simt::Device;  // threads may outlive main()
  return instance;
}

thread_local cudaError_t last_error = cudaSuccess;

/// Remembers an error, as CUDA does for each thread, until somebody asks for it.
cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

simt::Bytes bytes_at(const void* begin, std::size_t bytes) {
  return {static_cast<const std::byte*>(begin), bytes};
}

}  // namespace

namespace simt {

void enqueue(cudaStream_t stream, Work work) {
  const Turn turn(mutex());
  ++counts().launches;
  device().queue(device().stream(stream), std::move(work));
}

void enqueue(cudaStream_t stream, std::function<void()> work) {
  enqueue(stream, Work{.run = std::move(work)});
}

std::size_t allocated_bytes() {
  const Turn turn(mutex());
  return device().memory().device_bytes();
}

std::span<const std::byte> allocation_of(const void* address) {
  const Turn turn(mutex());
  const Allocation* const found = device().memory().find(std::bit_cast<std::uintptr_t>(address));
  if (found == nullptr) return {};
  return {std::bit_cast<const std::byte*>(found->begin), found->bytes};
}

}  // namespace simt

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
  }
  return "cudaErrorUnknown";
}
const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }
cudaError_t cudaPeekAtLastError() { return last_error; }
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

cudaError_t cudaGetDeviceCount(int* count) {
  const simt::Machine& machine = simt::machine();
  if (machine.driver < simt::kRuntime) return remember(cudaErrorInsufficientDriver);
  *count = machine.num_devices;
  return machine.num_devices > 0 ? cudaSuccess : remember(cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int* number) {
  *number = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int number) {
  return number < simt::machine().num_devices ? cudaSuccess : remember(cudaErrorInvalidValue);
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = kMultiprocessors;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = simt::machine().compute_capability / 10;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = simt::machine().compute_capability % 10;
      break;
  }
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "SIMT executor");
  properties->totalGlobalMem = kTotalBytes;
  properties->multiProcessorCount = kMultiprocessors;
  properties->l2CacheSize = 1 << 20;
  properties->major = simt::machine().compute_capability / 10;
  properties->minor = simt::machine().compute_capability % 10;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = simt::machine().driver;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = simt::kRuntime;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int from, int to) {
  *can = from != to && simt::machine().has_peers ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  const Turn turn(mutex());
  *total_bytes = kTotalBytes;
  *free_bytes = kTotalBytes - device().memory().device_bytes();
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  const Turn turn(mutex());
  simt::counts().add_wait();
  device().wait_until_idle();
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -1;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const Turn turn(mutex());
  ++simt::counts().allocations;
  if (device().memory().device_bytes() + bytes > kTotalBytes)
    return remember(cudaErrorMemoryAllocation);
  // aligned_alloc needs whole multiples; malloc'd red zones must begin right after the last byte.
  if (posix_memalign(memory, 256, bytes == 0 ? 1 : bytes) != 0) {
    return remember(cudaErrorMemoryAllocation);
  }
  std::memset(*memory, 0xFE, bytes);
  device().memory().add(*memory, bytes, simt::Allocation::Kind::kDevice);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  const Turn turn(mutex());
  if (memory == nullptr) return cudaSuccess;
  device().run_all();
  if (!device().memory().remove(memory, simt::Allocation::Kind::kDevice)) {
    return remember(cudaErrorInvalidValue);
  }
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  const Turn turn(mutex());
  ++simt::counts().allocations;
  *memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (*memory == nullptr) return remember(cudaErrorMemoryAllocation);
  device().memory().add(*memory, bytes, simt::Allocation::Kind::kPinned);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  const Turn turn(mutex());
  device().run_all();
  device().memory().remove(memory, simt::Allocation::Kind::kPinned);
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to,
                            const void* from,
                            std::size_t bytes,
                            cudaMemcpyKind,
                            cudaStream_t stream) {
  const Turn turn(mutex());
  if (bytes == 0) return cudaSuccess;
  ++simt::counts().copies;
  simt::counts().copied_bytes += static_cast<std::int64_t>(bytes);
  device().queue_copy(device().stream(stream), to, bytes_at(from, bytes));
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  const Turn turn(mutex());
  if (bytes == 0) return cudaSuccess;
  ++simt::counts().fills;
  device().queue(device().stream(stream), {.run = [=] { std::memset(memory, value, bytes); },
                                           .name = "a fill of " + std::to_string(bytes) + " bytes",
                                           .writes = {bytes_at(memory, bytes)}});
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  const Turn turn(mutex());
  *stream = device().make_stream();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Turn turn(mutex());
  device().destroy_stream(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Turn turn(mutex());
  simt::counts().add_wait();
  device().wait_for(device().stream(stream));
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Turn turn(mutex());
  return remember(device().has_reached(device().stream(stream)) ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Turn turn(mutex());
  device().queue_wait(device().stream(stream), *event);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Turn turn(mutex());
  device().run_all();
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Turn turn(mutex());
  device().queue_record(device().stream(stream), *event);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Turn turn(mutex());
  simt::counts().add_wait();
  device().wait_for(*event);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Turn turn(mutex());
  return remember(device().has_reached(*event) ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  const Turn turn(mutex());
  *milliseconds = std::chrono::duration<float, std::milli>(stop->time - start->time).count();
  return cudaSuccess;
}
