#include "cuda/backend/cuda_device.h"

#include <utility>

#include <cuda_runtime_api.h>

#include "cuda/backend/check.h"
#include "cuda/backend/gpus.h"
#include "cuda/backend/libtorch_order.h"
#include "cuda/backend/prims.h"
#include "satrap/core/log.h"

namespace satrap::backend {
namespace {

/// For destructors: logs the error that a call returned, if any.
void complain(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // as check() does
  log_error("{}: {}", call, cudaGetErrorName(error));
}

Grids grids_of(int number) {
  int multiprocessors = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, number),
        "cudaDeviceGetAttribute");
  return {multiprocessors};
}

cudaEvent_t native_event(void* event) { return static_cast<cudaEvent_t>(event); }

}  // namespace

std::unique_ptr<Device> make_cuda_device(int number) {
  const std::string reason = why_no_cuda();
  if (!reason.empty()) throw Error(ErrorCode::kUnavailable, "no GPU can be used: " + reason);
  if (number < 0 || number >= num_cuda_devices()) {
    throw Error(ErrorCode::kUnavailable,
                concat("there is no GPU ", number, ", only ", num_cuda_devices()));
  }
  if (const std::string why = why_not_this_gpu(number); !why.empty()) {
    throw Error(ErrorCode::kUnavailable, why + "; leave it out of CUDA_VISIBLE_DEVICES");
  }
  return std::make_unique<CudaDevice>(number);
}

CudaDevice::CudaDevice(int number) : number_(number), grids_(grids_of(number)) {
  CudaDevice::use_on_this_thread();
}

void CudaDevice::use_on_this_thread() const { check(cudaSetDevice(number_), "cudaSetDevice"); }

DeviceInfo CudaDevice::info() const {
  cudaDeviceProp properties{};
  std::size_t free_bytes = 0, total_bytes = 0;
  DeviceInfo info;
  check(cudaGetDeviceProperties(&properties, number_), "cudaGetDeviceProperties");
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  check(cudaDriverGetVersion(&info.driver_version), "cudaDriverGetVersion");
  info.name = properties.name;
  info.compute_capability = compute_capability(number_);
  info.num_multiprocessors = properties.multiProcessorCount;
  info.memory_bytes = static_cast<std::int64_t>(total_bytes);
  info.free_bytes = static_cast<std::int64_t>(free_bytes);
  info.l2_bytes = properties.l2CacheSize;
  char address[32] = "";
  check(cudaDeviceGetPCIBusId(address, sizeof(address), number_), "cudaDeviceGetPCIBusId");
  info.bus_address = address;
  return info;
}

// --------------------------------------------------------------------------------------- memory

std::byte* CudaDevice::allocate(Place place, std::int64_t bytes, const char* what) {
  SATRAP_CHECK(bytes >= 0, what, ": ", bytes, " bytes");
  if (bytes == 0) return nullptr;
  use_on_this_thread();
  void* data = nullptr;
  const auto size = static_cast<std::size_t>(bytes);
  const bool is_device = place == Place::kDevice;
  const cudaError_t error =
      is_device ? cudaMalloc(&data, size) : cudaHostAlloc(&data, size, cudaHostAllocDefault);
  if (error == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());  // it is not sticky, but remembered
    std::size_t free_bytes = 0, total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    throw Error(ErrorCode::kUnavailable,
                is_device ? concat(what, " needs ", bytes, " bytes of device memory; ", free_bytes,
                                   " of ", total_bytes, " are free")
                          : concat(what, " needs ", bytes, " bytes of pinned host memory"));
  }
  check(error, is_device ? "cudaMalloc" : "cudaHostAlloc");
  return static_cast<std::byte*>(data);
}

// Owners are destroyed on any thread.
void CudaDevice::free(Place place, std::byte* memory) noexcept {
  complain(cudaSetDevice(number_), "cudaSetDevice");
  if (place == Place::kDevice) {
    complain(cudaFree(memory), "cudaFree");
  } else {
    complain(cudaFreeHost(memory), "cudaFreeHost");
  }
}

// Without an address of its own, kernels find it where the host does.
std::string CudaDevice::register_host(std::byte* memory, std::int64_t bytes) {
  use_on_this_thread();
  cudaError_t error = cudaHostRegister(memory, static_cast<std::size_t>(bytes),
                                       cudaHostRegisterPortable | cudaHostRegisterMapped);
  const char* call = "cudaHostRegister";
  if (error == cudaSuccess) {
    void* address = nullptr;
    error = cudaHostGetDevicePointer(&address, memory, 0);
    if (error == cudaSuccess && address == memory) return {};
    call = "cudaHostGetDevicePointer";
    complain(cudaHostUnregister(memory), "cudaHostUnregister");
  }
  if (error == cudaSuccess) return "the GPU has another address for it";
  static_cast<void>(cudaGetLastError());  // as check() does
  return concat(call, ": ", cudaGetErrorName(error));
}

void CudaDevice::unregister_host(std::byte* memory) noexcept {
  complain(cudaSetDevice(number_), "cudaSetDevice");
  complain(cudaHostUnregister(memory), "cudaHostUnregister");
}

void CudaDevice::copy(void* to, const void* from, std::int64_t bytes, StreamRef stream) {
  if (bytes == 0) return;
  check(
      cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, native(stream)),
      "cudaMemcpyAsync");
}

void CudaDevice::fill(void* memory, int byte, std::int64_t bytes, StreamRef stream) {
  if (bytes == 0) return;
  check(cudaMemsetAsync(memory, byte, static_cast<std::size_t>(bytes), native(stream)),
        "cudaMemsetAsync");
}

std::int64_t CudaDevice::prims_scratch_bytes(std::int64_t max_items) const {
  return backend::prims_scratch_bytes(max_items);
}

// --------------------------------------------------------------------------- streams and events

void* CudaDevice::make_stream(bool high_priority) {
  use_on_this_thread();
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                     high_priority ? greatest : least),
        "cudaStreamCreateWithPriority");
  return stream;
}

void CudaDevice::destroy_stream(void* stream) noexcept {
  complain(cudaSetDevice(number_), "cudaSetDevice");
  complain(cudaStreamDestroy(native({stream})), "cudaStreamDestroy");
}

void CudaDevice::wait_until_idle(StreamRef stream) {
  check(cudaStreamSynchronize(native(stream)), "cudaStreamSynchronize");
}

void* CudaDevice::make_event(bool with_time) {
  use_on_this_thread();
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, with_time ? cudaEventDefault : cudaEventDisableTiming),
        "cudaEventCreateWithFlags");
  return event;
}

void CudaDevice::destroy_event(void* event) noexcept {
  complain(cudaSetDevice(number_), "cudaSetDevice");
  complain(cudaEventDestroy(native_event(event)), "cudaEventDestroy");
}

void CudaDevice::record(void* event, StreamRef stream) {
  check(cudaEventRecord(native_event(event), native(stream)), "cudaEventRecord");
}

void CudaDevice::make_wait(StreamRef stream, void* event) {
  check(cudaStreamWaitEvent(native(stream), native_event(event), 0), "cudaStreamWaitEvent");
}

bool CudaDevice::is_reached(void* event) {
  const cudaError_t error = cudaEventQuery(native_event(event));
  if (error == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());  // CUDA keeps it, and later calls would report it
    return false;
  }
  check(error, "cudaEventQuery");
  return true;
}

void CudaDevice::wait_until_reached(void* event) {
  check(cudaEventSynchronize(native_event(event)), "cudaEventSynchronize");
}

double CudaDevice::milliseconds_between(void* start, void* stop) {
  float milliseconds = 0.0F;
  check(cudaEventElapsedTime(&milliseconds, native_event(start), native_event(stop)),
        "cudaEventElapsedTime");
  return static_cast<double>(milliseconds);
}

// ----------------------------------------------------------------------------------- recordings

// Calls of other threads, which may allocate or wait, do not end it.
void CudaDevice::begin_recording(StreamRef stream) {
  use_on_this_thread();
  check(cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
}

void* CudaDevice::end_recording(StreamRef stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(native(stream), &graph), "cudaStreamEndCapture");
  cudaGraphExec_t executable = nullptr;
  const cudaError_t error = cudaGraphInstantiate(&executable, graph, 0);
  complain(cudaGraphDestroy(graph), "cudaGraphDestroy");
  check(error, "cudaGraphInstantiate");
  return executable;
}

// The error may have left nothing of the recording.
void CudaDevice::abandon_recording(StreamRef stream) noexcept {
  cudaGraph_t graph = nullptr;
  static_cast<void>(cudaStreamEndCapture(native(stream), &graph));
  static_cast<void>(cudaGetLastError());
  if (graph != nullptr) complain(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

void CudaDevice::queue_recording(void* recording, StreamRef stream) {
  check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(recording), native(stream)),
        "cudaGraphLaunch");
}

void CudaDevice::destroy_recording(void* recording) noexcept {
  complain(cudaSetDevice(number_), "cudaSetDevice");
  complain(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(recording)), "cudaGraphExecDestroy");
}

// ------------------------------------------------------------------------------------- libtorch

int CudaDevice::libtorch_gpu() const { return backend::libtorch_gpu(number_); }

void CudaDevice::run_in_order(StreamRef stream, std::function<void()> compute) {
  use_on_this_thread();
  backend::run_in_order(stream, std::move(compute));
}

}  // namespace satrap::backend
