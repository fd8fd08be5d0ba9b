#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "tests/support/simt/counts.h"
#include "tests/support/simt/memory.h"
#include "tests/support/simt/order.h"
#include "tests/support/simt/races.h"

struct CUevent_st {
  std::int64_t recorded = 0;   // number of records queued
  std::int64_t completed = 0;  // the last of them that was reached
  simt::Clock clock;           // of the last record
  std::chrono::steady_clock::time_point time;
};

struct CUstream_st {
  struct Item {
    simt::Work work;
    simt::Clock before{};          // the clock of the stream, with this work
    CUevent_st* awaits = nullptr;  // not before this event
    std::int64_t generation = 0;   //   has completed so often
    bool ready() const { return awaits == nullptr || awaits->completed >= generation; }
  };
  simt::StreamOrder order;
  std::deque<Item> queue{};
};

namespace {

constexpr std::size_t kTotalBytes = std::size_t{1} << 30;
constexpr int kMultiprocessors = 1;
constexpr int kDevices = 8;  // that a machine has; a program uses one of them

// The simulated device of the program: its streams, and its memory.
struct Device {
  simt::Order order;
  CUstream_st default_stream{.order = order.make_stream()};
  std::vector<CUstream_st*> streams{&default_stream};
  simt::Memory memory;
  simt::Races races{memory};
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

thread_local cudaError_t last_error = cudaSuccess;

/// Remembers an error, as CUDA does for each thread, until somebody asks for it.
cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

simt::Bytes bytes_at(const void* begin, std::size_t bytes) {
  return {static_cast<const std::byte*>(begin), bytes};
}

std::uintptr_t address_of(simt::Bytes bytes) { return std::bit_cast<std::uintptr_t>(bytes.data()); }

CUstream_st& stream_of(cudaStream_t stream) {
  return stream == nullptr ? device().default_stream : *stream;
}

/// Runs work, and looks at what it touches. A record of an event has no name, and touches nothing.
void run(const CUstream_st& stream, const CUstream_st::Item& item) {
  if (item.work.name.empty()) return item.work.run();
  simt::Races& races = device().races;
  races.begin(item.work.name + " on stream " + std::to_string(stream.order.number),
              stream.order.index, item.before);
  for (const simt::Bytes bytes : item.work.reads)
    races.touch_range<false>(address_of(bytes), bytes.size());
  for (const simt::Bytes bytes : item.work.writes)
    races.touch_range<true>(address_of(bytes), bytes.size());
  {
    const simt::Races::Watch watch(races);
    item.work.run();
  }
  races.end();
}

/// Runs one piece of work of any stream that can continue; false if there is none.
bool progress() {
  std::vector<CUstream_st*> ready;
  for (CUstream_st* stream : device().streams) {
    if (!stream->queue.empty() && stream->queue.front().ready()) ready.push_back(stream);
  }
  if (ready.empty()) return false;
  CUstream_st* stream = ready[simt::draw_stream(ready.size())];
  const CUstream_st::Item item = std::move(stream->queue.front());
  stream->queue.pop_front();
  try {
    run(*stream, item);
  } catch (...) {  // the device is lost: queued work will not run
    for (CUstream_st* other : device().streams) other->queue.clear();
    throw;
  }
  return true;
}

template <class Done>
void run_until(Done done) {
  while (!done()) {
    if (!progress()) throw simt::Fault("streams wait for each other for ever");
  }
}

cudaError_t waited_for(const simt::Clock& clock) {
  device().order.host_waits_for(clock);
  return cudaSuccess;
}

bool all_idle() {
  for (const CUstream_st* stream : device().streams) {
    if (!stream->queue.empty()) return false;
  }
  return true;
}

cudaError_t wait_until_idle() {
  run_until(all_idle);
  device().order.host_waits_for_all();
  return cudaSuccess;
}

void queue(cudaStream_t stream, simt::Work work) {
  CUstream_st& target = stream_of(stream);
  target.queue.push_back({.work = std::move(work), .before = device().order.queue(target.order)});
  // A device works while nobody waits for it.
  if (simt::draw_stream(4) == 1) progress();
}

}  // namespace

namespace simt {

void enqueue(cudaStream_t stream, Work work) {
  const Turn turn(mutex());
  ++counts().launches;
  queue(stream, std::move(work));
}

void enqueue(cudaStream_t stream, std::function<void()> work) {
  enqueue(stream, Work{.run = std::move(work)});
}

std::size_t allocated_bytes() {
  const Turn turn(mutex());
  return device().memory.device_bytes();
}

std::span<const std::byte> allocation_of(const void* address) {
  const Turn turn(mutex());
  const Allocation* const found = device().memory.find(std::bit_cast<std::uintptr_t>(address));
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
  *free_bytes = kTotalBytes - device().memory.device_bytes();
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  const Turn turn(mutex());
  simt::counts().add_wait();
  return wait_until_idle();
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -1;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const Turn turn(mutex());
  ++simt::counts().allocations;
  if (device().memory.device_bytes() + bytes > kTotalBytes)
    return remember(cudaErrorMemoryAllocation);
  // aligned_alloc needs whole multiples; malloc'd red zones must begin right after the last byte.
  if (posix_memalign(memory, 256, bytes == 0 ? 1 : bytes) != 0) {
    return remember(cudaErrorMemoryAllocation);
  }
  std::memset(*memory, 0xFE, bytes);
  device().memory.add(*memory, bytes, simt::Allocation::Kind::kDevice);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  const Turn turn(mutex());
  if (memory == nullptr) return cudaSuccess;
  wait_until_idle();
  if (!device().memory.remove(memory, simt::Allocation::Kind::kDevice)) {
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
  device().memory.add(*memory, bytes, simt::Allocation::Kind::kPinned);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  const Turn turn(mutex());
  wait_until_idle();
  device().memory.remove(memory, simt::Allocation::Kind::kPinned);
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
  queue(stream, {.run = [=] { std::memcpy(to, from, bytes); },
                 .name = "a copy of " + std::to_string(bytes) + " bytes",
                 .reads = {bytes_at(from, bytes)},
                 .writes = {bytes_at(to, bytes)}});
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  const Turn turn(mutex());
  if (bytes == 0) return cudaSuccess;
  ++simt::counts().fills;
  queue(stream, {.run = [=] { std::memset(memory, value, bytes); },
                 .name = "a fill of " + std::to_string(bytes) + " bytes",
                 .writes = {bytes_at(memory, bytes)}});
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  const Turn turn(mutex());
  *stream = new CUstream_st{.order = device().order.make_stream()};
  device().streams.push_back(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Turn turn(mutex());
  run_until([&] { return stream->queue.empty(); });
  device().order.end_stream(stream->order);
  std::erase(device().streams, stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Turn turn(mutex());
  simt::counts().add_wait();
  run_until([&] { return stream_of(stream).queue.empty(); });
  return waited_for(stream_of(stream).order.clock);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Turn turn(mutex());
  progress();
  if (!stream_of(stream).queue.empty()) return remember(cudaErrorNotReady);
  return waited_for(stream_of(stream).order.clock);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Turn turn(mutex());
  stream_of(stream).queue.push_back(
      {.work = {.run = [] {}, .name = ""}, .awaits = event, .generation = event->recorded});
  stream_of(stream).order.clock.join(event->clock);
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
  event->clock = stream_of(stream).order.clock;
  queue(stream, {.run =
                     [event, generation] {
                       event->completed = generation;
                       event->time = std::chrono::steady_clock::now();
                     },
                 .name = ""});
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Turn turn(mutex());
  simt::counts().add_wait();
  run_until([&] { return event->completed >= event->recorded; });
  return waited_for(event->clock);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Turn turn(mutex());
  progress();
  if (event->completed < event->recorded) return remember(cudaErrorNotReady);
  return waited_for(event->clock);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  const Turn turn(mutex());
  *milliseconds = std::chrono::duration<float, std::milli>(stop->time - start->time).count();
  return cudaSuccess;
}
