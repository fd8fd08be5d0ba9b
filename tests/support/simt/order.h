#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "tests/support/simt/clock.h"

namespace simt {

/// A stream's place in the order of all work.
struct StreamOrder {
  std::size_t index = 0;    // in clocks
  std::int64_t number = 0;  // how many streams came before it
  Clock clock;              // what comes before its next work
};

/// The order of work by CUDA's rules: that of a stream, events that streams wait for, and waits of
/// the host. It follows from calls alone, not from what has run.
///
/// A wait of any host thread orders what all threads queue after it. Threads also tell each other
/// by mutexes, which nobody sees here: this misses an order that another thread has by luck, but
/// reports no two pieces of work that are ordered. Nor is seen what the host itself reads and
/// writes.
class Order {
 public:
  StreamOrder make_stream() {
    StreamOrder stream{.index = free_index(), .number = num_streams_++, .clock = waited_for_};
    return stream;
  }
  /// Its work may still be unordered.
  void end_stream(const StreamOrder& stream) { free_.push_back(stream.index); }

  /// Queues a piece of work. Returns its clock.
  const Clock& queue(StreamOrder& stream, int device) {
    stream.clock.join(waited_for_);
    stream.clock.tick(stream.index);
    queued_.tick(stream.index);
    queued_of_[device].raise(stream.index, stream.clock.of(stream.index));
    return stream.clock;
  }

  void host_waits_for(const Clock& clock) { waited_for_.join(clock); }
  void host_waits_for_all(int device) { waited_for_.join(queued_of_[device]); }

 private:
  /// That of a stream that has ended before whatever is queued from now on, or a new one.
  std::size_t free_index() {
    for (std::size_t& index : free_) {
      if (waited_for_.of(index) < queued_.of(index)) continue;
      const std::size_t found = index;
      index = free_.back();
      free_.pop_back();
      return found;
    }
    return num_indices_++;
  }

  Clock queued_, waited_for_;
  std::map<int, Clock> queued_of_;  // by device
  std::vector<std::size_t> free_;
  std::size_t num_indices_ = 0;
  std::int64_t num_streams_ = 0;
};

}  // namespace simt
