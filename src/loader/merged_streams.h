#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "satrap/loader/loaders.h"
#include "satrap/net/deadline.h"
#include "src/loader/loader_list.h"
#include "src/loader/loader_wire.h"
#include "src/loader/received_stream.h"

namespace satrap::loader {

/// What the passes of a rank share.
struct RankSide {
  net::Endpoint endpoint;
  std::shared_ptr<net::Store> store;
  std::string name;
  LoadersOptions options;
  LoaderList list;
};

/// The deliveries of a pass, taken from the streams of all loaders that there are, turn by turn.
class MergedStreams : public data::RowDeliveries {
 public:
  /// `side` outlives it.
  MergedStreams(RankSide& side, PassRequest request);

  bool next(data::RowDelivery& delivery) override;
  void close() override;

 private:
  bool open_streams();
  bool try_loaders();
  std::vector<std::unique_ptr<ReceivedStream>> reach(const std::vector<LoaderEntry>& loaders);
  bool open(std::vector<std::unique_ptr<ReceivedStream>> streams);
  void take(data::RowDelivery& delivery);
  bool has_newcomer();
  void lose(const LoaderEntry& loader, const std::string& why);
  void drop_streams();
  bool is_stopped() const;
  void pause(std::int64_t milliseconds);

  RankSide& side_;
  const PassRequest request_;
  const data::Schema schema_;
  const std::int64_t rows_per_turn_;
  std::int64_t next_row_;  // of the pass: all before it have been delivered
  LoaderList::Clock::time_point looked_at_;
  std::string last_failure_;               // of a loader or the store, in words
  const ReceivedStream* asked_ = nullptr;  // by take()

  std::mutex mutex_;
  std::condition_variable closed_;
  std::atomic<bool> is_closed_{false};
  std::vector<std::unique_ptr<ReceivedStream>> streams_;  // changed by next(), under the mutex
};

}  // namespace satrap::loader
