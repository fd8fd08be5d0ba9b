#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "tests/support/simt/capture.h"
#include "tests/support/simt/clock.h"
#include "tests/support/simt/memory.h"
#include "tests/support/simt/order.h"
#include "tests/support/simt/races.h"

struct CUevent_st {
  int device = 0;
  std::int64_t recorded = 0;   // number of records queued
  std::int64_t completed = 0;  // the last of them that was reached
  simt::Clock clock;           // of the last record
  std::chrono::steady_clock::time_point time;
  simt::Captured captured;           // the last record was of a capture
  std::shared_ptr<CUevent_st> self;  // until it is destroyed; queued work keeps it too
  bool is_reached() const { return completed >= recorded; }
};

struct CUstream_st {
  struct Item {
    simt::Work work;
    simt::Clock before{};                        // the clock of the stream, with this work
    std::shared_ptr<const CUevent_st> awaits{};  // not before this event
    std::int64_t generation = 0;                 //   has completed so often
    bool has_begun = false;                      // work that is polled
    bool ready() const { return awaits == nullptr || awaits->completed >= generation; }
  };
  int device = 0;
  simt::StreamOrder order;
  std::deque<Item> queue{};
  bool is_destroyed = false;
  simt::Captured captured{};  // while it is
  bool is_reached() const { return queue.empty(); }
};

namespace simt {

/// The simulated devices of the program: their memory, and their streams, whose work runs when
/// somebody waits, and now and then when work is queued. Callers have the turn (turns.h).
///
/// After a Fault they are lost, as in CUDA: nothing runs any more, and whoever waits is told, until
/// the program has destroyed its streams.
class Devices {
 public:
  Devices();

  int count() const { return count_; }
  void set_count(int count) { count_ = count; }
  Memory& memory() { return memory_; }

  /// Whose memory kernels of a device may touch, other than its own.
  DeviceSet& peers_of(int device) { return peers_[device]; }

  cudaStream_t make_stream(int device);
  /// Its work goes on if it waits for others.
  void destroy_stream(cudaStream_t stream);
  /// `device`: that whose default stream a null handle is.
  CUstream_st& stream(cudaStream_t handle, int device);

  void queue(CUstream_st& stream, Work work);
  /// Work that is made when it is queued: again by each replay of a capture.
  void queue_made(CUstream_st& stream, const std::function<Work()>& make);
  /// Pinned memory that is copied from may be changed by queued work, but not by the host.
  void queue_copy(CUstream_st& stream, void* to, Bytes from);
  void queue_record(CUstream_st& stream, CUevent_st& event);
  /// False if one is captured, and the other is not or by another capture, which ends it.
  bool queue_wait(CUstream_st& stream, CUevent_st& event);

  std::vector<std::shared_ptr<Capture>>& captures() { return captures_; }

  /// Waits of the host: for a stream or an event, or for all streams of a device. They give the
  /// turn away while there is nothing to run here. Throw Fault.
  template <class Awaited>
  void wait_for(const Awaited& awaited) {
    while (!awaited.is_reached()) run_some();
    note_wait(clock_of(awaited));
  }
  void wait_until_idle(int device);

  /// Runs something, and says whether the stream or the event has been reached.
  template <class Awaited>
  bool has_reached(const Awaited& awaited) {
    run_one();
    if (awaited.is_reached()) note_wait(clock_of(awaited));
    throw_if_lost();
    return awaited.is_reached();
  }

  /// As wait_until_idle, but for calls that free something: they do not tell of a lost device.
  void run_all(int device);

  /// Runs one piece of work of any stream that can continue, or lets one that waits for others go
  /// on; false if there is none.
  bool run_one();

  /// After a Fault that nobody has been told of.
  void lose(const std::string& fault) { lost_ = fault; }

 private:
  static const Clock& clock_of(const CUstream_st& stream) { return stream.order.clock; }
  static const Clock& clock_of(const CUevent_st& event) { return event.clock; }
  std::size_t hash_if_pinned(Bytes bytes) const;
  void note_wait(const Clock& clock);
  void throw_if_lost();
  static bool wait_in_capture(Captured& captured, CUstream_st& stream, CUevent_st& event);
  void run_some();
  Progress proceed(CUstream_st& stream);
  void begin(const CUstream_st& stream, const CUstream_st::Item& item);
  void run(const CUstream_st& stream, const CUstream_st::Item& item);
  void drop_all();
  void end(CUstream_st* stream);
  DeviceSet touched_by(const CUstream_st& stream, const Work& work) const;
  bool has_streams() const { return streams_.size() > default_streams_.size(); }

  int count_ = 0;
  std::map<int, DeviceSet> peers_;  // by device
  Order order_;
  Memory memory_;
  Races races_{memory_};
  std::map<int, CUstream_st*> default_streams_;  // by device
  std::vector<CUstream_st*> streams_;
  std::vector<std::shared_ptr<Capture>> captures_;  // that have not ended
  std::string lost_;                                // the Fault
};

/// Those of the program, for a caller that has the turn.
Devices& devices();

/// The device of the calling thread, by cudaSetDevice.
int current_device();

/// Its number among all devices of the machine, of other programs too. SIMT_DEVICE_ID: that of this
/// program's device 0.
std::uint64_t device_of_machine(int device);

}  // namespace simt
