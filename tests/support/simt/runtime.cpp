#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <dlfcn.h>

struct CUevent_st {
  std::int64_t recorded = 0;   // number of records queued
  std::int64_t completed = 0;  // the last of them that was reached
  std::chrono::steady_clock::time_point time;
};

struct CUstream_st {
  struct Work {
    std::function<void()> run;
    CUevent_st* awaits = nullptr;  // not before this event
    std::int64_t generation = 0;   //   has completed so often
    bool ready() const { return awaits == nullptr || awaits->completed >= generation; }
  };
  std::deque<Work> queue;
};

namespace {

constexpr std::size_t kTotalBytes = std::size_t{1} << 30;
constexpr int kMultiprocessors = 1;
constexpr int kDevices = 8;  // that a machine has; a program uses one of them

// The simulated device of the program: its streams and the sizes of its allocations.
struct Device {
  CUstream_st default_stream;
  std::vector<CUstream_st*> streams{&default_stream};
  std::map<const void*, std::size_t> allocations, pinned;
  std::size_t allocated = 0;
};

Device& device() {
  static Device& instance = *new Device;  // threads may outlive main()
  return instance;
}

/// Calls of several threads come one after the other; work runs in the thread that waits for it.
using Turn = std::lock_guard<std::recursive_mutex>;
std::recursive_mutex& mutex() {
  static auto& instance = *new std::recursive_mutex;
  return instance;
}

/// What the program has asked of its device. With SIMT_COUNTS they are written to that file at its
/// end, as JSON.
struct Counts {
  std::int64_t launches = 0, copies = 0, copied_bytes = 0, fills = 0, waits = 0, allocations = 0;

  Counts() {
    if (std::getenv("SIMT_COUNTS") != nullptr) std::atexit([] { counts.write(); });
  }
  void write() const {
    std::ofstream(std::getenv("SIMT_COUNTS"))
        << "{\"launches\": " << launches << ", \"copies\": " << copies
        << ", \"copied_bytes\": " << copied_bytes << ", \"fills\": " << fills
        << ", \"waits\": " << waits << ", \"allocations\": " << allocations << "}\n";
  }
  static Counts counts;
};
Counts Counts::counts;

thread_local cudaError_t last_error = cudaSuccess;

/// Remembers an error, as CUDA does for each thread, until somebody asks for it.
cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

CUstream_st& stream_of(cudaStream_t stream) {
  return stream == nullptr ? device().default_stream : *stream;
}

/// Runs one piece of work of any stream that can continue; false if there is none.
bool progress() {
  std::vector<CUstream_st*> ready;
  for (CUstream_st* stream : device().streams) {
    if (!stream->queue.empty() && stream->queue.front().ready()) ready.push_back(stream);
  }
  if (ready.empty()) return false;
  CUstream_st* stream = ready[simt::draw_stream(ready.size())];
  const CUstream_st::Work work = std::move(stream->queue.front());
  stream->queue.pop_front();
  try {
    work.run();
  } catch (...) {  // the device is lost: queued work will not run
    for (CUstream_st* other : device().streams) other->queue.clear();
    throw;
  }
  return true;
}

template <class Done>
cudaError_t run_until(Done done) {
  while (!done()) {
    if (!progress()) throw simt::Fault("streams wait for each other for ever");
  }
  return cudaSuccess;
}

bool all_idle() {
  for (const CUstream_st* stream : device().streams) {
    if (!stream->queue.empty()) return false;
  }
  return true;
}

void queue(cudaStream_t stream, std::function<void()> work) {
  stream_of(stream).queue.push_back({.run = std::move(work)});
  // A device works while nobody waits for it.
  if (simt::draw_stream(4) == 1) progress();
}

}  // namespace

namespace simt {

void enqueue(cudaStream_t stream, std::function<void()> work) {
  const Turn turn(mutex());
  ++Counts::counts.launches;
  queue(stream, std::move(work));
}

std::string name_of_kernel(void* kernel) {
  Dl_info info;
  if (dladdr(kernel, &info) != 0 && info.dli_sname != nullptr) return info.dli_sname;
  std::ostringstream out;
  out << "kernel " << kernel;
  return out.str();
}

std::size_t allocated_bytes() {
  const Turn turn(mutex());
  return device().allocated;
}

std::span<const std::byte> allocation_of(const void* address) {
  const Turn turn(mutex());
  for (const auto& memory : {std::cref(device().allocations), std::cref(device().pinned)}) {
    auto after = memory.get().upper_bound(address);
    if (after == memory.get().begin()) continue;
    const auto& [begin, bytes] = *--after;
    const auto* first = static_cast<const std::byte*>(begin);
    if (static_cast<const std::byte*>(address) < first + bytes) return {first, bytes};
  }
  return {};
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
  *count = kDevices;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* number) {
  *number = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int number) {
  return number < kDevices ? cudaSuccess : remember(cudaErrorInvalidValue);
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = kMultiprocessors;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "SIMT executor");
  properties->totalGlobalMem = kTotalBytes;
  properties->multiProcessorCount = kMultiprocessors;
  properties->l2CacheSize = 1 << 20;
  properties->major = 9;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 0;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  const Turn turn(mutex());
  *total_bytes = kTotalBytes;
  *free_bytes = kTotalBytes - device().allocated;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  const Turn turn(mutex());
  ++Counts::counts.waits;
  return run_until(all_idle);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -1;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const Turn turn(mutex());
  ++Counts::counts.allocations;
  if (device().allocated + bytes > kTotalBytes) return remember(cudaErrorMemoryAllocation);
  // aligned_alloc needs whole multiples; malloc'd red zones must begin right after the last byte.
  if (posix_memalign(memory, 256, bytes == 0 ? 1 : bytes) != 0) {
    return remember(cudaErrorMemoryAllocation);
  }
  std::memset(*memory, 0xFE, bytes);
  device().allocations[*memory] = bytes;
  device().allocated += bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  const Turn turn(mutex());
  if (memory == nullptr) return cudaSuccess;
  run_until(all_idle);
  const auto found = device().allocations.find(memory);
  if (found == device().allocations.end()) return remember(cudaErrorInvalidValue);
  device().allocated -= found->second;
  device().allocations.erase(found);
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  const Turn turn(mutex());
  ++Counts::counts.allocations;
  *memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (*memory == nullptr) return remember(cudaErrorMemoryAllocation);
  device().pinned[*memory] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  const Turn turn(mutex());
  run_until(all_idle);
  device().pinned.erase(memory);
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
  ++Counts::counts.copies;
  Counts::counts.copied_bytes += static_cast<std::int64_t>(bytes);
  queue(stream, [=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  const Turn turn(mutex());
  if (bytes == 0) return cudaSuccess;
  ++Counts::counts.fills;
  queue(stream, [=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  const Turn turn(mutex());
  *stream = new CUstream_st;
  device().streams.push_back(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Turn turn(mutex());
  run_until([&] { return stream->queue.empty(); });
  std::erase(device().streams, stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Turn turn(mutex());
  ++Counts::counts.waits;
  return run_until([&] { return stream_of(stream).queue.empty(); });
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Turn turn(mutex());
  progress();
  return stream_of(stream).queue.empty() ? cudaSuccess : remember(cudaErrorNotReady);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Turn turn(mutex());
  stream_of(stream).queue.push_back({.run = [] {}, .awaits = event, .generation = event->recorded});
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Turn turn(mutex());
  run_until(all_idle);
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Turn turn(mutex());
  const std::int64_t generation = ++event->recorded;
  queue(stream, [event, generation] {
    event->completed = generation;
    event->time = std::chrono::steady_clock::now();
  });
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Turn turn(mutex());
  ++Counts::counts.waits;
  return run_until([&] { return event->completed >= event->recorded; });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Turn turn(mutex());
  progress();
  return event->completed >= event->recorded ? cudaSuccess : remember(cudaErrorNotReady);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  const Turn turn(mutex());
  *milliseconds = std::chrono::duration<float, std::milli>(stop->time - start->time).count();
  return cudaSuccess;
}
