#include "src/backend/host_device.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/core/resource.h"

namespace satrap::backend {
namespace {

constexpr std::align_val_t kAlignment{256};

using Time = std::chrono::steady_clock::time_point;

}  // namespace

std::unique_ptr<Device> make_host_device(ThreadPool* pool) {
  return std::make_unique<HostDevice>(pool);
}

void HostDevice::for_each(std::int64_t count, const std::function<void(std::int64_t)>& body) const {
  if (pool_ != nullptr) return pool_->parallel_for(count, body);
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

DeviceInfo HostDevice::info() const {
  const auto page = static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
  DeviceInfo info;
  info.name = "the host";
  info.num_multiprocessors = 1;
  info.memory_bytes = memory_bytes();
  info.free_bytes = std::min(info.memory_bytes, page * sysconf(_SC_AVPHYS_PAGES));
  return info;
}

std::byte* HostDevice::allocate(Place, std::int64_t bytes, const char* what) {
  SATRAP_CHECK(bytes >= 0, what, ": ", bytes, " bytes");
  if (bytes == 0) return nullptr;
  const DeviceInfo host = info();
  void* memory = bytes > host.memory_bytes
                     ? nullptr
                     : operator new(static_cast<std::size_t>(bytes), kAlignment, std::nothrow);
  if (memory == nullptr) {
    throw Error(ErrorCode::kUnavailable,
                concat(what, " needs ", bytes, " bytes of the host's memory; ", host.free_bytes,
                       " of ", host.memory_bytes, " are free"));
  }
  return static_cast<std::byte*>(memory);
}

void HostDevice::free(Place, std::byte* memory) noexcept { operator delete(memory, kAlignment); }

void HostDevice::copy(void* to, const void* from, std::int64_t bytes, StreamRef) {
  if (bytes != 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void HostDevice::fill(void* memory, int byte, std::int64_t bytes, StreamRef) {
  if (bytes != 0) std::memset(memory, byte, static_cast<std::size_t>(bytes));
}

void* HostDevice::make_event(bool) { return new Time; }
void HostDevice::destroy_event(void* event) noexcept { delete static_cast<Time*>(event); }
void HostDevice::record(void* event, StreamRef) {
  *static_cast<Time*>(event) = std::chrono::steady_clock::now();
}
double HostDevice::milliseconds_between(void* start, void* stop) {
  const std::chrono::duration<double, std::milli> time =
      *static_cast<Time*>(stop) - *static_cast<Time*>(start);
  return time.count();
}

}  // namespace satrap::backend
