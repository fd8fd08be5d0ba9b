#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "satrap/backend/operations.h"
#include "satrap/core/float_matrix.h"
#include "satrap/core/thread_pool.h"

namespace satrap::backend {

/// A device as seen by this process.
struct DeviceInfo {
  std::string name;
  int compute_capability = 0;  // 90 for sm_90; 0 for the host
  int num_multiprocessors = 0;
  std::int64_t memory_bytes = 0, free_bytes = 0, l2_bytes = 0;
  int driver_version = 0;        // 13000 for CUDA 13.0
  std::string bus_address = {};  // of its place in the machine; empty for the host
};

using satrap::Place;

/// A device that keeps and trains embedding rows: a GPU, or the host, which computes the same bits
/// with the functions of `kernels` and runs at once what a GPU queues. Memory (memory.h), Stream
/// and Event (stream.h) own the handles (void*) that it returns; they refer to their device, which
/// must outlive them. Thread-safe, except that the host's build_plan, and its pool_forward and
/// backward operations, keep scratch: one call of each kind at a time.
class Device : public Operations {
 public:
  virtual DeviceInfo info() const = 0;

  /// Whether its memory is the host's, so that its operations reach all of that.
  virtual bool is_host() const = 0;

  /// Every thread calls this before it uses the device: CUDA's current device is per thread.
  virtual void use_on_this_thread() const = 0;

  // ---- memory

  /// kDevice or kPinnedHost. Throws Error(kUnavailable), naming the purpose, the bytes requested
  /// and the bytes available.
  virtual std::byte* allocate(Place place, std::int64_t bytes, const char* what) = 0;
  /// Waits for what is queued, on any stream, since that may use the memory.
  virtual void free(Place place, std::byte* memory) noexcept = 0;

  /// Lets kernels read memory of the host where it is: whole pages, which belong to nothing else.
  /// All of it becomes resident and locked. Empty if it is; else why not, and nothing has changed.
  /// To be undone before the memory is freed, and once nothing that is queued reads it any more.
  virtual std::string register_host(std::byte* memory, std::int64_t bytes) = 0;
  virtual void unregister_host(std::byte* memory) noexcept = 0;

  /// Queues a copy of `bytes` between any two places. Host memory must not change until the copy is
  /// done; it must be pinned for the copy to overlap with other work.
  virtual void copy(void* to, const void* from, std::int64_t bytes, StreamRef stream) = 0;

  /// Queues the filling of device memory with one byte.
  virtual void fill(void* memory, int byte, std::int64_t bytes, StreamRef stream) = 0;

  /// Bytes of PlanView::prims_scratch and SlotList::prims_scratch for this many items.
  virtual std::int64_t prims_scratch_bytes(std::int64_t max_items) const = 0;

  // ---- streams and events

  virtual void* make_stream(bool high_priority) = 0;
  virtual void destroy_stream(void* stream) noexcept = 0;
  virtual void wait_until_idle(StreamRef stream) = 0;  // blocks the calling thread

  virtual void* make_event(bool with_time) = 0;
  virtual void destroy_event(void* event) noexcept = 0;
  virtual void record(void* event, StreamRef stream) = 0;
  virtual void make_wait(StreamRef stream, void* event) = 0;
  virtual bool is_reached(void* event) = 0;
  virtual void wait_until_reached(void* event) = 0;
  virtual double milliseconds_between(void* start, void* stop) = 0;

  // ---- recordings: work that is queued again and again with the same arguments (Recording). The
  // host, which runs at once what is queued, has none

  /// Records all that is queued on `stream` until end_recording, instead of running it. Only this
  /// thread may use the stream meanwhile.
  virtual void begin_recording(StreamRef stream) = 0;
  virtual void* end_recording(StreamRef stream) = 0;
  virtual void abandon_recording(StreamRef stream) noexcept = 0;  // instead, after an error
  virtual void queue_recording(void* recording, StreamRef stream) = 0;
  virtual void destroy_recording(void* recording) noexcept = 0;

  // ---- libtorch, for a dense network in the device's memory

  /// The number of the GPU on which libtorch queues its kernels by itself; -1: its tensors are the
  /// host's, and it computes in the calls below.
  virtual int libtorch_gpu() const = 0;

  /// Runs `compute`, in which libtorch reads and writes memory of the device, in the order of
  /// `stream`: at once where libtorch queues its kernels on `stream` itself, or where nothing is
  /// queued; else when it is its turn. Errors of `compute` come out here or where one waits.
  virtual void run_in_order(StreamRef stream, std::function<void()> compute) = 0;
};

/// The host's memory and CPU. `pool`, which outlives it, shares the work of pool_forward and
/// backward_update; without one the calling thread does it.
std::unique_ptr<Device> make_host_device(ThreadPool* pool = nullptr);

/// Empty if a GPU can be used, else the reason and what to do: no CUDA in this build, no driver or
/// one that is too old, no device, none that the kernels are compiled for.
std::string why_no_cuda();

/// The GPUs that this process can see; 0 if why_no_cuda() says why.
int num_cuda_devices();

/// The GPU with this number. Throws Error(kUnavailable) if there is none, or the kernels are not
/// compiled for it.
std::unique_ptr<Device> make_cuda_device(int number);

/// The version of CUDA that this build has and the one that the driver is for, where why_no_cuda()
/// is empty; "" in a build without CUDA.
std::string describe_cuda();

/// Whether the kernels and copies of one GPU can read the memory of the other.
bool can_access_peer(int from, int to);

}  // namespace satrap::backend
