#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "satrap/core/bounded_queue.h"
#include "satrap/core/thread_group.h"
#include "satrap/data/topic_position.h"
#include "src/loader/loader_streams.h"

namespace satrap::loader {

/// The deliveries of a pass over a topic without an end. Each loader reads partitions of its own,
/// and what arrives first comes first; rows are numbered as they come. When a loader is lost or a
/// new one has come, the partitions are divided anew, from the last row that has been delivered.
///
/// A thread "loader-take" for each loader waits for what it sends.
class TopicStreams : public data::RowDeliveries {
 public:
  /// `side` outlives it. The request's configuration says where in the topic the pass begins.
  TopicStreams(RankSide& side, PassRequest request);

  bool next(data::RowDelivery& delivery) override;
  void close() override { streams_.close(); }

 private:
  struct Arrival {
    std::int64_t stream = 0;
    data::RowDelivery delivery = {};
    std::exception_ptr error = {};
  };

  /// The threads of the streams that are open.
  struct Receivers {
    explicit Receivers(const LoaderStreams& streams);
    void receive(ReceivedStream& stream, std::int64_t number);

    BoundedQueue<Arrival> arrived;
    BoundedQueue<data::RowDelivery> spare;  // whose memory is used again
    ThreadGroup threads;
  };

  /// The part of a stream that has come.
  struct Taken {
    std::int64_t end_row = 0;  // by its own numbers
    std::int64_t bytes = 0;
    std::int64_t lag = -1;
    std::int64_t time_ms = -1;
  };

  bool open();
  void drop();
  PassRequest request_of(std::int64_t number, std::int64_t count) const;
  void take(Arrival& arrival, data::RowDelivery& delivery);
  void pass_piece(const data::TopicPiece& piece, std::int64_t stream);
  void set_progress(data::ReadStats& stats);

  const PassRequest request_;
  const data::Schema schema_;
  data::TopicPosition position_;  // of the next row
  data::TopicPosition passed_;    // that after the delivery that take() looks at
  std::int64_t bytes_ = 0;
  std::int64_t lag_ = -1;
  std::vector<Taken> taken_;                      // of each stream
  std::vector<data::TopicPosition> shares_ = {};  // the same: where it began
  LoaderStreams streams_;
  std::unique_ptr<Receivers> receivers_;  // null: no stream is open
};

}  // namespace satrap::loader
