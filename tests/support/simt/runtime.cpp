#include "tests/support/simt/runtime.h"

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <cuda_runtime_api.h>

#include "tests/support/simt/counts.h"
#include "tests/support/simt/device.h"
#include "tests/support/simt/machine.h"
#include "tests/support/simt/turns.h"

namespace {

constexpr std::size_t kTotalBytes = std::size_t{1} << 30;
constexpr int kMultiprocessors = 1;

using simt::check_unsafe;
using simt::current_device;
using simt::devices;
using simt::remember;
using simt::Turn;
using simt::turns;

thread_local cudaError_t last_error = cudaSuccess;
thread_local int device_of_thread = 0;

bool is_device(int number) {
  const Turn turn(turns());
  return number >= 0 && number < devices().count();
}

/// A stream or an event of a capture cannot be waited for, and spoils it.
cudaError_t check_wait(cudaStream_t stream) {
  if (stream == nullptr || !stream->captured) return check_unsafe();
  stream->captured.capture->is_valid = false;
  return remember(cudaErrorStreamCaptureUnsupported);
}
cudaError_t check_wait(const CUevent_st& event) {
  if (!event.captured) return check_unsafe();
  event.captured.capture->is_valid = false;
  return remember(cudaErrorCapturedEvent);
}

/// A made-up place on the machine, other for each device.
int bus_of(std::uint64_t id) { return static_cast<int>((id + 1) & 0xFF); }
int domain_of(std::uint64_t id) { return static_cast<int>((id + 1) >> 8 & 0x7FFF); }

simt::Bytes bytes_at(const void* begin, std::size_t bytes) {
  return {static_cast<const std::byte*>(begin), bytes};
}

}  // namespace

namespace simt {

int current_device() { return device_of_thread; }

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t check_queue(cudaStream_t stream) {
  const bool is_valid =
      stream == nullptr || !stream->captured || stream->captured.capture->is_valid;
  return is_valid ? cudaSuccess : remember(cudaErrorStreamCaptureInvalidated);
}

cudaError_t check_unsafe() {
  cudaError_t error = cudaSuccess;
  for (const auto& capture : devices().captures()) {
    const bool is_ours = capture->thread == std::this_thread::get_id();
    if (capture->mode == cudaStreamCaptureModeRelaxed) continue;
    if (capture->mode == cudaStreamCaptureModeThreadLocal && !is_ours) continue;
    capture->is_valid = false;
    error = cudaErrorStreamCaptureUnsupported;
  }
  return remember(error);
}

std::uint64_t device_of_machine(int device) {
  const char* const first = std::getenv("SIMT_DEVICE_ID");
  return (first == nullptr ? 0 : std::strtoull(first, nullptr, 10)) +
         static_cast<std::uint64_t>(device);
}

void set_num_devices(int count) {
  const Turn turn(turns());
  devices().set_count(count);
}

cudaError_t check_launch(cudaStream_t stream) {
  const Turn turn(turns());
  if (const cudaError_t error = check_queue(stream)) return error;
  if (stream == nullptr || stream->device == current_device()) return cudaSuccess;
  return remember(cudaErrorInvalidResourceHandle);
}

void enqueue(cudaStream_t stream, Work work) {
  const Turn turn(turns());
  if (check_launch(stream) != cudaSuccess) {
    throw Fault(work.name + " on a stream of device " + std::to_string(stream->device) +
                ", by a thread that uses device " + std::to_string(current_device()));
  }
  ++counts().launches;
  devices().queue(devices().stream(stream, current_device()), std::move(work));
}

void enqueue(cudaStream_t stream, std::function<void()> work) {
  enqueue(stream, Work{.run = std::move(work)});
}

std::size_t allocated_bytes() {
  const Turn turn(turns());
  return devices().memory().device_bytes();
}

std::span<const std::byte> allocation_of(const void* address) {
  const Turn turn(turns());
  const Allocation* const found = devices().memory().find(std::bit_cast<std::uintptr_t>(address));
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
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorIllegalState:
      return "cudaErrorIllegalState";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureUnmatched:
      return "cudaErrorStreamCaptureUnmatched";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation:
      return "cudaErrorStreamCaptureIsolation";
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
    case cudaErrorStreamCaptureWrongThread:
      return "cudaErrorStreamCaptureWrongThread";
    case cudaErrorPeerAccessAlreadyEnabled:
      return "cudaErrorPeerAccessAlreadyEnabled";
    case cudaErrorPeerAccessNotEnabled:
      return "cudaErrorPeerAccessNotEnabled";
    case cudaErrorHostMemoryAlreadyRegistered:
      return "cudaErrorHostMemoryAlreadyRegistered";
    case cudaErrorHostMemoryNotRegistered:
      return "cudaErrorHostMemoryNotRegistered";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
  }
  return "cudaErrorUnknown";
}
const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }
cudaError_t cudaPeekAtLastError() { return last_error; }
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

cudaError_t cudaGetDeviceCount(int* count) {
  if (simt::machine().driver < simt::kRuntime) return remember(cudaErrorInsufficientDriver);
  const Turn turn(turns());
  *count = devices().count();
  return *count > 0 ? cudaSuccess : remember(cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int* number) {
  *number = current_device();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int number) {
  if (!is_device(number)) return remember(cudaErrorInvalidDevice);
  device_of_thread = number;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int number) {
  if (!is_device(number)) return remember(cudaErrorInvalidDevice);
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
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int number) {
  if (!is_device(number)) return remember(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "SIMT executor");
  const std::uint64_t id = simt::device_of_machine(number);
  std::memcpy(properties->uuid.bytes, &id, sizeof(id));
  properties->pciBusID = bus_of(id);
  properties->pciDomainID = domain_of(id);
  properties->totalGlobalMem = kTotalBytes;
  properties->multiProcessorCount = kMultiprocessors;
  properties->l2CacheSize = 1 << 20;
  properties->major = simt::machine().compute_capability / 10;
  properties->minor = simt::machine().compute_capability % 10;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int number) {
  if (!is_device(number)) return remember(cudaErrorInvalidDevice);
  const std::uint64_t id = simt::device_of_machine(number);
  const int needed = std::snprintf(text, static_cast<std::size_t>(bytes), "%04X:%02X:00.0",
                                   domain_of(id), bus_of(id));
  return needed < bytes ? cudaSuccess : remember(cudaErrorInvalidValue);
}
cudaError_t cudaDeviceCanAccessPeer(int* can_access, int number, int peer) {
  if (!is_device(number) || !is_device(peer)) return remember(cudaErrorInvalidDevice);
  *can_access = number != peer && simt::machine().has_peers ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (flags != 0) return remember(cudaErrorInvalidValue);
  if (!is_device(peer) || peer == current_device()) return remember(cudaErrorInvalidDevice);
  const Turn turn(turns());
  auto access = devices().peers_of(current_device())[static_cast<std::size_t>(peer)];
  if (access) return remember(cudaErrorPeerAccessAlreadyEnabled);
  access = true;
  return cudaSuccess;
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  if (!is_device(peer)) return remember(cudaErrorInvalidDevice);
  const Turn turn(turns());
  auto access = devices().peers_of(current_device())[static_cast<std::size_t>(peer)];
  if (!access) return remember(cudaErrorPeerAccessNotEnabled);
  access = false;
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
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  const Turn turn(turns());
  *total_bytes = kTotalBytes;
  *free_bytes = kTotalBytes - devices().memory().device_bytes(current_device());
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  const Turn turn(turns());
  if (const cudaError_t error = check_unsafe()) return error;
  simt::counts().add_wait();
  devices().wait_until_idle(current_device());
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -1;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const Turn turn(turns());
  if (const cudaError_t error = check_unsafe()) return error;
  ++simt::counts().allocations;
  if (devices().memory().device_bytes(current_device()) + bytes > kTotalBytes)
    return remember(cudaErrorMemoryAllocation);
  // aligned_alloc needs whole multiples; malloc'd red zones must begin right after the last byte.
  if (posix_memalign(memory, 256, bytes == 0 ? 1 : bytes) != 0) {
    return remember(cudaErrorMemoryAllocation);
  }
  std::memset(*memory, 0xFE, bytes);
  devices().memory().add(*memory, bytes, simt::Allocation::Kind::kDevice, current_device());
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  const Turn turn(turns());
  if (const cudaError_t error = check_unsafe()) return error;
  if (memory == nullptr) return cudaSuccess;
  const auto* const found = devices().memory().find(std::bit_cast<std::uintptr_t>(memory));
  devices().run_all(found == nullptr ? current_device() : found->device);
  if (!devices().memory().remove(memory, simt::Allocation::Kind::kDevice)) {
    return remember(cudaErrorInvalidValue);
  }
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  const Turn turn(turns());
  if (const cudaError_t error = check_unsafe()) return error;
  ++simt::counts().allocations;
  *memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (*memory == nullptr) return remember(cudaErrorMemoryAllocation);
  devices().memory().add(*memory, bytes, simt::Allocation::Kind::kPinned, current_device());
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  const Turn turn(turns());
  if (const cudaError_t error = check_unsafe()) return error;
  devices().run_all(current_device());
  devices().memory().remove(memory, simt::Allocation::Kind::kPinned);
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned) {
  const Turn turn(turns());
  if (const cudaError_t error = check_unsafe()) return error;
  const std::size_t page = 4096;
  if (bytes == 0 || bytes % page != 0 || std::bit_cast<std::uintptr_t>(memory) % page != 0) {
    return remember(cudaErrorInvalidValue);
  }
  if (devices().memory().overlaps(memory, bytes)) {
    return remember(cudaErrorHostMemoryAlreadyRegistered);
  }
  const auto most = static_cast<std::size_t>(simt::machine().registered_mib) << 20;
  if (devices().memory().registered_bytes() + bytes > most) {
    return remember(cudaErrorMemoryAllocation);
  }
  devices().memory().add(memory, bytes, simt::Allocation::Kind::kRegistered, current_device());
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* memory) {
  const Turn turn(turns());
  if (const cudaError_t error = check_unsafe()) return error;
  devices().run_all(current_device());
  const bool is_found = devices().memory().remove(memory, simt::Allocation::Kind::kRegistered);
  return is_found ? cudaSuccess : remember(cudaErrorHostMemoryNotRegistered);
}
cudaError_t cudaHostGetDevicePointer(void** address, void* memory, unsigned) {
  const Turn turn(turns());
  const auto* const found = devices().memory().find(std::bit_cast<std::uintptr_t>(memory));
  if (found == nullptr || found->kind == simt::Allocation::Kind::kDevice) {
    return remember(cudaErrorInvalidValue);
  }
  *address = memory;
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to,
                            const void* from,
                            std::size_t bytes,
                            cudaMemcpyKind,
                            cudaStream_t stream) {
  const Turn turn(turns());
  if (const cudaError_t error = simt::check_queue(stream)) return error;
  if (bytes == 0) return cudaSuccess;
  ++simt::counts().copies;
  simt::counts().copied_bytes += static_cast<std::int64_t>(bytes);
  devices().queue_copy(devices().stream(stream, current_device()), to, bytes_at(from, bytes));
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  const Turn turn(turns());
  if (const cudaError_t error = simt::check_queue(stream)) return error;
  if (bytes == 0) return cudaSuccess;
  ++simt::counts().fills;
  devices().queue(devices().stream(stream, current_device()),
                  {.run = [=] { std::memset(memory, value, bytes); },
                   .name = "a fill of " + std::to_string(bytes) + " bytes",
                   .writes = {bytes_at(memory, bytes)}});
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  const Turn turn(turns());
  *stream = devices().make_stream(current_device());
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Turn turn(turns());
  devices().destroy_stream(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Turn turn(turns());
  if (const cudaError_t error = check_wait(stream)) return error;
  simt::counts().add_wait();
  devices().wait_for(devices().stream(stream, current_device()));
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Turn turn(turns());
  if (const cudaError_t error = check_wait(stream)) return error;
  return remember(devices().has_reached(devices().stream(stream, current_device()))
                      ? cudaSuccess
                      : cudaErrorNotReady);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Turn turn(turns());
  if (const cudaError_t error = simt::check_queue(stream)) return error;
  const bool is_queued = devices().queue_wait(devices().stream(stream, current_device()), *event);
  return is_queued ? cudaSuccess : remember(cudaErrorStreamCaptureIsolation);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  const auto made = std::make_shared<CUevent_st>();
  made->device = current_device();
  made->self = made;
  *event = made.get();
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Turn turn(turns());
  event->self.reset();
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Turn turn(turns());
  if (const cudaError_t error = simt::check_queue(stream)) return error;
  if (event->device != devices().stream(stream, current_device()).device) {
    return remember(cudaErrorInvalidResourceHandle);
  }
  devices().queue_record(devices().stream(stream, current_device()), *event);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Turn turn(turns());
  if (const cudaError_t error = check_wait(*event)) return error;
  simt::counts().add_wait();
  devices().wait_for(*event);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Turn turn(turns());
  if (const cudaError_t error = check_wait(*event)) return error;
  return remember(devices().has_reached(*event) ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  const Turn turn(turns());
  if (start->device != stop->device) return remember(cudaErrorInvalidResourceHandle);
  *milliseconds = std::chrono::duration<float, std::milli>(stop->time - start->time).count();
  return cudaSuccess;
}
