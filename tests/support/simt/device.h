#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "tests/support/simt/clock.h"
#include "tests/support/simt/memory.h"
#include "tests/support/simt/order.h"
#include "tests/support/simt/races.h"

struct CUevent_st {
  std::int64_t recorded = 0;   // number of records queued
  std::int64_t completed = 0;  // the last of them that was reached
  simt::Clock clock;           // of the last record
  std::chrono::steady_clock::time_point time;
  bool is_reached() const { return completed >= recorded; }
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
  bool is_reached() const { return queue.empty(); }
};

namespace simt {

/// The simulated device of the program: its memory, and its streams, whose work runs when somebody
/// waits, and now and then when work is queued. Its callers take turns.
///
/// After a Fault the device is lost, as in CUDA: nothing runs any more, and whoever waits is told,
/// until the program has destroyed its streams.
class Device {
 public:
  Memory& memory() { return memory_; }

  cudaStream_t make_stream();
  void destroy_stream(cudaStream_t stream);
  CUstream_st& stream(cudaStream_t handle) { return handle == nullptr ? default_stream_ : *handle; }

  void queue(CUstream_st& stream, Work work);
  /// Pinned memory that is copied from may be changed by queued work, but not by the host.
  void queue_copy(CUstream_st& stream, void* to, Bytes from);
  void queue_record(CUstream_st& stream, CUevent_st& event);
  void queue_wait(CUstream_st& stream, CUevent_st& event);

  /// Waits of the host: for a stream or an event, or for all. Throw Fault.
  template <class Awaited>
  void wait_for(const Awaited& awaited) {
    while (!awaited.is_reached()) run_some();
    note_wait(clock_of(awaited));
  }
  void wait_until_idle();

  /// Runs something, and says whether the stream or the event has been reached.
  template <class Awaited>
  bool has_reached(const Awaited& awaited) {
    run_one();
    if (awaited.is_reached()) note_wait(clock_of(awaited));
    throw_if_lost();
    return awaited.is_reached();
  }

  /// As wait_until_idle, but for calls that free something: they do not tell of a lost device.
  void run_all();

 private:
  static const Clock& clock_of(const CUstream_st& stream) { return stream.order.clock; }
  static const Clock& clock_of(const CUevent_st& event) { return event.clock; }
  std::size_t hash_if_pinned(Bytes bytes) const;
  void note_wait(const Clock& clock);
  void throw_if_lost() const;
  bool run_one();
  void run_some();
  void run(const CUstream_st& stream, const CUstream_st::Item& item);

  Order order_;
  Memory memory_;
  Races races_{memory_};
  CUstream_st default_stream_{.order = order_.make_stream()};
  std::vector<CUstream_st*> streams_{&default_stream_};
  std::string lost_;  // the Fault
};

}  // namespace simt
