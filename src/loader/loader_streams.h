#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "satrap/core/mutex.h"
#include "satrap/loader/loaders.h"
#include "satrap/net/deadline.h"
#include "src/loader/loader_list.h"
#include "src/loader/loader_wire.h"
#include "src/loader/received_stream.h"

namespace satrap::loader {

/// The common part of a rank's passes.
struct RankSide {
  net::Endpoint endpoint;
  std::shared_ptr<net::Rendezvous> store;
  std::string name;
  LoadersOptions options;
  LoaderList list;
};

/// The streams of one pass, one from each loader that there is. Used by one thread, except for
/// close() and is_stopped().
class LoaderStreams {
 public:
  /// The request to the loader of stream `number` of `count`.
  using Requests = std::function<PassRequest(std::int64_t number, std::int64_t count)>;

  /// `side` outlives it, and so does what `schema` says of columns. Of more than `max_streams`
  /// loaders the others have nothing to do.
  LoaderStreams(RankSide& side, const data::Schema& schema, std::int64_t max_streams = INT64_MAX);

  /// Opens the streams; waits for a loader. False if nobody waits for rows any more. Throws
  /// Error(kIo) if there is none for the timeout, Error(kInvalidConfig) if one is of another
  /// version.
  bool open(const Requests& requests);

  /// Rows have come: the time of waiting for a loader begins anew with the next open().
  void note_rows() { deadline_.reset(); }

  bool is_open() const { return !streams_.empty(); }
  std::int64_t count() const { return std::ssize(streams_); }
  ReceivedStream& operator[](std::int64_t number) const {
    return *streams_[static_cast<std::size_t>(number)];
  }

  /// Whether a loader that is not used, and could be, can be reached. Looks now and then.
  bool has_newcomer();

  /// The loader is not used for some time.
  void lose(const LoaderEntry& loader, const std::string& why);
  void drop();

  /// Ends all waits, now and later. Thread-safe.
  void close();
  bool is_closed() const { return is_closed_; }
  bool is_stopped() const;

 private:
  bool try_loaders(const Requests& requests);
  std::vector<std::unique_ptr<ReceivedStream>> reach(std::vector<LoaderEntry> loaders);
  bool ask(std::vector<std::unique_ptr<ReceivedStream>> streams, const Requests& requests);
  void pause(std::int64_t milliseconds);

  RankSide& side_;
  const data::Schema& schema_;
  const std::int64_t max_streams_;
  LoaderList::Clock::time_point looked_at_;
  std::optional<net::Deadline> deadline_;  // since the first open() without rows
  std::string last_failure_;               // of a loader or the store, in words

  Mutex mutex_;
  CondVar closed_;
  std::atomic<bool> is_closed_{false};
  std::vector<std::unique_ptr<ReceivedStream>> streams_;  // changed by its thread, under the mutex
};

}  // namespace satrap::loader
