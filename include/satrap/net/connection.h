#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "satrap/net/deadline.h"
#include "satrap/net/endpoint.h"
#include "satrap/net/net_error.h"
#include "satrap/net/rendezvous.h"
#include "satrap/net/request.h"

namespace satrap::net {

/// A pending answer. Movable; one thread waits for it. Destroying it before that waits.
class Ticket {
 public:
  Ticket();
  Ticket(Ticket&&) noexcept;
  Ticket& operator=(Ticket&&) noexcept;
  ~Ticket();

  /// Blocks until the answer has arrived, at most until the deadline of the call, and returns
  /// its bytes: the front of the caller's memory, or memory that lives as long as the ticket.
  /// Throws NetError: kRemote if the server could not do it (the connection stays open); anything
  /// else means that the connection is closed. After it returns or throws, nobody touches the
  /// caller's memory any more. A second call returns or throws the same.
  std::span<const std::byte> wait();

  struct State;
  explicit Ticket(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

struct CallOptions {
  RequestTag tag{};

  /// Requests of a connection with this flag are handled one after the other, in the order in which
  /// they were sent; any free worker handles the others.
  bool ordered = false;

  /// For call_for_any_size: answers up to this size need no further trip over the network, and are
  /// the cheapest (one message of Gloo; an answer into the caller's memory takes two).
  std::int64_t expected_reply_bytes = 4096;
};

/// The client's end of a connection to a Server: requests and answers, many in flight at a time.
///
/// Thread-safe. A connection ends when its peer dies (all waits throw within milliseconds), hangs
/// (within the endpoint's heartbeat timeout), breaks the protocol, or misses a deadline: Gloo can
/// cancel a transfer only by closing the connection. It is never reopened; see ReconnectingClient.
class Connection {
 public:
  /// Finds server `server` in the store and connects. Until the deadline it waits for the server to
  /// appear and retries failed attempts from the beginning. Throws NetError: kTimeout, or kRefused,
  /// with the reason, as soon as the server refuses. `name` is for the server's log.
  Connection(const Endpoint& endpoint,
             Rendezvous& store,
             const std::string& server,
             const std::string& name,
             Deadline deadline);

  /// Connects to server `server` at `address`, Server::address, in one attempt. Throws NetError: a
  /// server that has ended is kClosed at once.
  Connection(const Endpoint& endpoint,
             const std::string& address,
             const std::string& server,
             const std::string& name,
             Deadline deadline);
  ~Connection();  // closes; tickets not waited for throw kClosed
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;

  /// Sends a request whose answer has at most reply.size() bytes and is received straight into that
  /// memory, which must live until the ticket has been waited for. The request's memory must not be
  /// written to until then. Blocks while max_in_flight() tickets have not been waited for, at most
  /// until the deadline, which also applies to the answer. Throws as Ticket::wait and check_size.
  Ticket call(Op op,
              const RequestBuffer& request,
              std::span<std::byte> reply,
              Deadline deadline,
              const CallOptions& options = {});

  /// As call, for an answer of any size, received into memory of the ticket. Beyond 4 KiB it costs
  /// one more trip over the network.
  Ticket call_for_any_size(Op op,
                           const RequestBuffer& request,
                           Deadline deadline,
                           const CallOptions& options = {});

  /// Throws NetError(kRefused) for a request larger than max_request_bytes(); nothing is sent.
  void check_size(const RequestBuffer& request) const;

  /// Closes at once: all waits throw kClosed.
  void close(const std::string& reason);

  bool is_open() const;
  std::int64_t max_in_flight() const;      // what the server allows
  std::int64_t max_request_bytes() const;  // the same

  class Core;

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace satrap::net
