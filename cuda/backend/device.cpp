#include "satrap/backend/device.h"

#include <cuda_runtime_api.h>

#include "cuda/backend/check.h"

namespace satrap::backend {

std::string why_unavailable() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  // Without a driver the error is that it is too old.
  if (error != cudaSuccess) return concat(cudaGetErrorName(error), ": ", cudaGetErrorString(error));
  return count == 0 ? "no device" : "";
}

DeviceInfo device_info() {
  int device = 0;
  cudaDeviceProp properties{};
  std::size_t free_bytes = 0, total_bytes = 0;
  DeviceInfo info;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  check(cudaDriverGetVersion(&info.driver_version), "cudaDriverGetVersion");
  info.name = properties.name;
  info.compute_capability = properties.major * 10 + properties.minor;
  info.num_multiprocessors = properties.multiProcessorCount;
  info.memory_bytes = static_cast<std::int64_t>(total_bytes);
  info.free_bytes = static_cast<std::int64_t>(free_bytes);
  info.l2_bytes = properties.l2CacheSize;
  return info;
}

Stream::Stream(Priority priority) {
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                     priority == Priority::kHigh ? greatest : least),
        "cudaStreamCreateWithPriority");
  handle_ = stream;
}

Stream::~Stream() {
  if (handle_ != nullptr) complain(cudaStreamDestroy(native(*this)), "cudaStreamDestroy");
}

void Stream::wait_until_idle() const {
  check(cudaStreamSynchronize(native(*this)), "cudaStreamSynchronize");
}

namespace {
cudaEvent_t native_event(void* handle) { return static_cast<cudaEvent_t>(handle); }
}  // namespace

Event::Event(bool with_time) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, with_time ? cudaEventDefault : cudaEventDisableTiming),
        "cudaEventCreateWithFlags");
  handle_ = event;
}

Event::~Event() {
  if (handle_ != nullptr) complain(cudaEventDestroy(native_event(handle_)), "cudaEventDestroy");
}

void Event::record(StreamRef stream) {
  check(cudaEventRecord(native_event(handle_), native(stream)), "cudaEventRecord");
}

void Event::hold_back(StreamRef stream) const {
  check(cudaStreamWaitEvent(native(stream), native_event(handle_), 0), "cudaStreamWaitEvent");
}

bool Event::is_reached() const {
  const cudaError_t error = cudaEventQuery(native_event(handle_));
  if (error != cudaErrorNotReady) check(error, "cudaEventQuery");
  return error == cudaSuccess;
}

void Event::wait_until_reached() const {
  check(cudaEventSynchronize(native_event(handle_)), "cudaEventSynchronize");
}

double Event::milliseconds_between(const Event& start, const Event& stop) {
  float milliseconds = 0.0F;
  check(
      cudaEventElapsedTime(&milliseconds, native_event(start.handle_), native_event(stop.handle_)),
      "cudaEventElapsedTime");
  return static_cast<double>(milliseconds);
}

}  // namespace satrap::backend
