#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "satrap/core/mutex.h"
#include "satrap/net/server.h"
#include "src/net/endpoint_impl.h"
#include "src/net/link.h"
#include "src/net/wire.h"

namespace satrap::net {

/// The server's end of one connection, shared by the thread that reads it and by its calls.
class Session : public std::enable_shared_from_this<Session> {
 public:
  /// Takes a complete and well-formed request, on the reading thread.
  using Dispatch = std::function<void(std::unique_ptr<ServerCall>, bool ordered)>;

  /// Throws NetError without resources.
  Session(std::shared_ptr<Endpoint::Impl> endpoint,
          const ServerOptions& options,
          std::string client);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// The answer to the client's request for a control socket (see wire.h).
  std::string answer() const;
  const std::string& key() const { return key_; }

  /// The connection's two sockets, from the accepting thread. take_link: false if it has one.
  void take_control(FrameSocket control);
  bool take_link(Fd socket);

  /// Waits for the link, then reads requests until the connection ends. Throws the NetError that
  /// ended it.
  void run(const Dispatch& dispatch);

  /// Ends the connection; run() throws.
  void close(const std::string& reason);

  const std::string& client() const { return client_; }

 private:
  friend struct ServerCall::State;

  // A message's memory: a slot of the ring, or a separate buffer for a large one.
  struct Received {
    RequestHeader header{};
    std::optional<std::size_t> ring_slot;
    PooledMemory bulk;
    std::span<const std::byte> payload;
  };

  // Memory to send from, kept from reply to reply.
  struct Outgoing {
    PooledMemory memory;
    std::unique_ptr<LinkBuffer> buffer;
  };
  struct ReplySlot {
    Mutex mutex;  // one reply at a time; the next may begin while the last one's send returns
    bool is_busy SATRAP_GUARDED_BY(mutex) = false;
    Outgoing header SATRAP_GUARDED_BY(mutex);
    Outgoing payload SATRAP_GUARDED_BY(mutex);
  };

  // Gives it room for at least `bytes`, once the previous send from it is done.
  void prepare(Outgoing& outgoing, std::int64_t bytes);

  void adopt_link();
  void open_ring();
  Received receive(Deadline deadline);
  void check_header(const RequestHeader& header) const;
  void receive_bulk(Received& request);
  void occupy_reply_slot(const RequestHeader& header);
  void post(std::size_t ring_slot);
  void recycle(Received& request);  // the memory of a finished request

  const std::shared_ptr<Endpoint::Impl> endpoint_;
  const ServerOptions options_;
  const std::string client_;
  const std::string key_;
  const Deadline setup_deadline_;

  struct Ring {  // outlives the session if the breaker still wakes its reader
    Mutex mutex;
    CondVar changed;
    // In the order in which messages arrive.
    std::deque<std::size_t> posted SATRAP_GUARDED_BY(mutex);
    Fd link SATRAP_GUARDED_BY(mutex);  // until it is adopted
    bool has_link SATRAP_GUARDED_BY(mutex) = false;
  };
  const std::shared_ptr<Ring> ring_;
  const std::shared_ptr<Link> link_;
  Mutex post_mutex_;  // keeps Gloo's order of receives equal to ring_->posted
  Mutex watch_mutex_;
  std::unique_ptr<Monitor::Watch> watch_ SATRAP_GUARDED_BY(watch_mutex_);
  std::vector<PooledMemory> ring_memory_;
  std::vector<std::unique_ptr<LinkBuffer>> ring_buffers_;
  std::vector<ReplySlot> reply_slots_;
};

struct ServerCall::State {
  std::shared_ptr<Session> session;
  Session::Received request;
  std::span<std::byte> space{};
  std::int64_t reply_bytes = -1;  // of reply_space
  bool is_answered = false;

  State(std::shared_ptr<Session> of, Session::Received received)
      : session(std::move(of)), request(std::move(received)) {}
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::span<std::byte> reply_space(std::int64_t bytes);
  void send(ReplyStatus status, std::int64_t bytes);
  void fail(const std::string& message) noexcept;
  bool has_posted_payload() const { return request.header.reply_capacity > kInlineReplyBytes; }
  bool fits_inline(std::int64_t bytes) const {
    return !has_posted_payload() && bytes <= request.header.inline_bytes;
  }
};

}  // namespace satrap::net
