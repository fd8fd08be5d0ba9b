#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "satrap/net/connection.h"
#include "satrap/net/deadline.h"
#include "satrap/net/endpoint.h"
#include "satrap/net/rendezvous.h"
#include "satrap/net/request.h"

namespace satrap::net {

/// A connection to a server that is reopened when it breaks: the server's process was killed and
/// restarted, it hung, the link went down. Unanswered requests are then resent, in order, with
/// their original numbers (RequestTag::client and sequence), so that the server can apply each
/// once. No request is given up before its deadline, and none is dropped silently.
///
/// Thread-safe. It notices a broken connection during a wait or a call.
class ReconnectingClient {
 public:
  /// `attempt_ms`: how long a request may stay unanswered on one connection before the connection
  /// counts as broken; hence shorter than the deadlines of calls. The first call connects.
  ReconnectingClient(const Endpoint& endpoint,
                     std::shared_ptr<Rendezvous> store,
                     std::string server,
                     std::string name,
                     std::int32_t rank,
                     std::int64_t attempt_ms);
  ~ReconnectingClient();  // requests not waited for throw kClosed
  ReconnectingClient(const ReconnectingClient&) = delete;
  ReconnectingClient& operator=(const ReconnectingClient&) = delete;

  /// A pending request. One thread waits for it; destroying it before that waits.
  class Pending;

  /// As Connection::call; blocks while as many answers as the server allows requests have not been
  /// waited for. A buffer belongs to one call at a time. Without `reply` as call_for_any_size.
  /// `step` becomes part of the tag.
  std::unique_ptr<Pending> call(Op op,
                                std::int64_t step,
                                const RequestBuffer& request,
                                std::span<std::byte> reply,
                                Deadline deadline,
                                bool ordered = false);
  std::unique_ptr<Pending> call_for_any_size(Op op,
                                             std::int64_t step,
                                             const RequestBuffer& request,
                                             Deadline deadline,
                                             bool ordered = false);

  std::int64_t num_reconnects() const;  // connections made, less the first
  void close_connection();              // as if it had broken, for tests

  /// All waits and calls throw kClosed from then on; those in progress within seconds.
  void end();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

class ReconnectingClient::Pending {
 public:
  ~Pending();
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  /// As Ticket::wait, over as many connections as needed; called once. Throws NetError: kTimeout
  /// at the deadline, kRefused if the server refuses, kRemote if it could not do it.
  std::span<const std::byte> wait();

 private:
  friend class Impl;
  struct Request;
  explicit Pending(std::shared_ptr<Impl> impl, std::shared_ptr<Request> request);

  const std::shared_ptr<Impl> impl_;
  const std::shared_ptr<Request> request_;
  bool is_waited_ = false;
};

}  // namespace satrap::net
