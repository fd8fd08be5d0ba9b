#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "satrap/data/row_deliveries.h"
#include "satrap/net/connection.h"
#include "satrap/net/deadline.h"
#include "src/loader/loader_list.h"
#include "src/loader/loader_wire.h"

namespace satrap::loader {

/// One stream of a pass, as it comes from a loader, which is asked for kMaxInFlight deliveries
/// ahead. One thread, except for close().
class ReceivedStream {
 public:
  /// Connects to the loader. Throws NetError. `rank` is for the loader's log; `schema`, which
  /// outlives the stream, says the columns.
  ReceivedStream(const net::Endpoint& endpoint,
                 LoaderEntry loader,
                 const data::Schema& schema,
                 const std::string& rank,
                 net::Deadline deadline);
  ~ReceivedStream() { close(); }  // before what was asked for is waited for
  ReceivedStream(const ReceivedStream&) = delete;
  ReceivedStream& operator=(const ReceivedStream&) = delete;

  /// Asks for the stream that the request's split says. Throws NetError, or
  /// Error(kInvalidConfig) if the loader cannot read what this version asks for.
  void open(const PassRequest& request);

  /// The next delivery; waits for it. Throws NetError if the loader is lost or talks nonsense, else
  /// what has ended its reading.
  const data::RowDelivery& front();

  /// Hands the front over. Not that of the end, which stays.
  void pop(data::RowDelivery& delivery);

  /// The number of the turn, of the stream, that a delivery with this end is of.
  std::int64_t turn_of(std::int64_t end_row) const;

  const LoaderEntry& loader() const { return loader_; }

  /// Ends waits, which then throw NetError(kClosed).
  void close() { connection_.close("the rank needs no more rows"); }

 private:
  void ask();
  void receive();
  void check(const data::RowDelivery& delivery) const;

  const net::Endpoint& endpoint_;
  const LoaderEntry loader_;
  const data::Schema& schema_;
  net::Connection connection_;
  data::RowSplit split_;
  std::deque<net::Ticket> asked_;
  std::int64_t expected_bytes_ = std::int64_t{256} << 10;  // of an answer
  bool has_front_ = false;
  data::RowDelivery front_;
};

}  // namespace satrap::loader
