#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "satrap/net/endpoint.h"
#include "satrap/net/rendezvous.h"
#include "satrap/net/request.h"

namespace satrap::net {

/// One request at the server, and the means to answer it. Its owner may keep it, pass it on, and
/// answer from any thread; while it lives, its client can send one request less. If it is
/// destroyed without an answer, the client gets an error. Answers to clients that are gone are
/// dropped.
class ServerCall {
 public:
  struct State;
  explicit ServerCall(std::unique_ptr<State> state);
  ~ServerCall();
  ServerCall(const ServerCall&) = delete;
  ServerCall& operator=(const ServerCall&) = delete;

  Op op() const;
  const RequestTag& tag() const;
  const std::string& client_name() const;
  /// The same for all calls of a connection, another one for those of others that are open.
  const void* connection() const;
  std::span<const std::byte> payload() const;  // aligned to 64 bytes

  /// Largest size of the answer in bytes; -1: any size up to 4 GiB.
  std::int64_t reply_capacity() const;

  /// Memory for an answer of `bytes`, not initialised, aligned to 64 bytes; sent by send(). Throws
  /// NetError(kProtocol) if the client has less room. Call it once.
  std::span<std::byte> reply_space(std::int64_t bytes);
  void send();

  /// reply_space and send of a copy.
  void reply(std::span<const std::byte> bytes);
  /// Answers that it could not be done: the client gets NetError(kRemote) with the first 4 KiB of
  /// this text.
  void fail(const std::string& message);

  bool is_answered() const;

 private:
  std::unique_ptr<State> state_;
};

struct ServerOptions {
  /// Threads that run handlers. 0: a handler runs on the thread that reads its connection and must
  /// pass long work to other threads.
  std::int64_t num_workers = 0;

  /// Requests a client may have unanswered. They use their slots in turn, so slots beyond the need
  /// cost cache misses (measured: a quarter of the throughput for 16 instead of 8).
  std::int64_t max_in_flight = 8;

  /// Requests up to this size arrive in memory that is allocated beforehand (max_in_flight + 1 such
  /// slots per connection); larger ones are announced first, which costs one more network trip.
  std::int64_t slot_bytes = 2 << 20;

  /// Larger requests are refused before memory is allocated for them.
  std::int64_t max_request_bytes = std::int64_t{1} << 30;

  std::int64_t max_connections = 1024;

  /// Called once a connection has ended, by the thread that has read it: with num_workers 0, no
  /// handler of its calls runs any more. May be empty.
  std::function<void(const void* connection)> on_closed = {};

  /// Time for a client to identify itself, and then to set up its end of the connection.
  std::int64_t setup_timeout_ms = 10'000;
};

/// Accepts connections and passes their requests to a handler.
///
/// A connection is two TCP sockets, both to the server's port. On each, client and server first
/// prove to each other that they know the job's token; then the first carries names, limits and
/// heartbeats, and the second, which shows a secret from the first, belongs to Gloo. Strangers get
/// no further than 4 KiB and setup_timeout_ms. A client that is refused is told why. One that sends
/// anything malformed, oversized or out of turn loses its connection, with a warning in the log;
/// other clients are not affected.
///
/// Threads: one that accepts ("net-accept"), one per connection ("net-read"), num_workers
/// ("net-work-N").
class Server {
 public:
  /// Answers the call, or moves it out to be answered later. An exception becomes the client's
  /// error if the call has not been moved out.
  using Handler = std::function<void(std::unique_ptr<ServerCall>& call)>;

  /// The address that a server of this name has published last; nullopt: there was none.
  static std::optional<std::string> find(Rendezvous& store, const std::string& name);

  /// Listens, and then publishes its address in the store under `name`, replacing an earlier one.
  Server(const Endpoint& endpoint,
         Rendezvous& store,
         const std::string& name,
         const ServerOptions& options,
         Handler handler);

  /// Closes all connections and joins the threads. No handler runs afterwards. Calls kept elsewhere
  /// stay valid; their answers are dropped.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// "address port", as in the store.
  const std::string& address() const;
  std::int64_t num_connections() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace satrap::net
