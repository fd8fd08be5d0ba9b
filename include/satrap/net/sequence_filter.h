#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "satrap/core/mutex.h"
#include "satrap/net/deadline.h"
#include "satrap/net/request.h"

namespace satrap::net {

/// Lets a server apply each request once, however often a client sends it: remembers per client
/// which sequence numbers have been applied. A client numbers its requests 1, 2, 3, ...; they may
/// be applied in any order. Numbers older than the last few cost no memory. Thread-safe.
///
///   if (filter.begin(tag, deadline)) {   // else: already applied, only the answer was lost
///     apply(request);
///     filter.finish(tag);                // or abandon(tag) if it was not applied after all
///   }
class SequenceFilter {
 public:
  /// Number of clients remembered; beyond it the one that has been silent longest is forgotten.
  explicit SequenceFilter(std::int64_t max_clients = 4096);

  /// Whether the caller must apply the request now. False: it has been applied. If another thread
  /// is applying it, waits for that thread; throws NetError(kTimeout) at the deadline.
  bool begin(const RequestTag& tag, Deadline deadline);

  void finish(const RequestTag& tag);
  void abandon(const RequestTag& tag);  // a repeated request will be applied

  /// The client will send nothing more.
  void forget(std::uint64_t client);

  /// The sequence number of `client` up to which all requests have been applied.
  std::uint64_t applied_up_to(std::uint64_t client) const;

  std::int64_t num_clients() const;

 private:
  struct Client {
    std::uint64_t all_up_to = 0;
    std::set<std::uint64_t> beyond;  // applied, out of order
    std::set<std::uint64_t> under_way;
    std::uint64_t last_use = 0;
  };

  Client& client_of(const RequestTag& tag) SATRAP_REQUIRES(mutex_);
  void make_room() SATRAP_REQUIRES(mutex_);

  const std::int64_t max_clients_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::uint64_t, Client> clients_ SATRAP_GUARDED_BY(mutex_);
  std::uint64_t num_uses_ SATRAP_GUARDED_BY(mutex_) = 0;
};

}  // namespace satrap::net
