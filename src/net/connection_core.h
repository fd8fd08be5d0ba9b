#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "satrap/net/connection.h"
#include "src/net/credits.h"
#include "src/net/endpoint_impl.h"
#include "src/net/link.h"
#include "src/net/wire.h"

namespace satrap::net {

/// The limits of a server for its clients; part of its answer to the handshake.
struct ServerLimits {
  std::int64_t max_in_flight = 0;
  std::int64_t slot_bytes = 0;
  std::int64_t max_request_bytes = 0;
};

/// The state of a connection, shared by its handle and its tickets.
class Connection::Core {
 public:
  /// One attempt. Throws NetError.
  Core(std::shared_ptr<Endpoint::Impl> endpoint,
       const std::string& address,  // "address port", from the store
       const std::string& server,
       const std::string& name,
       Deadline deadline);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  const ServerLimits& limits() const { return limits_; }
  Link& link() { return *link_; }
  void close(const std::string& reason);

 private:
  friend struct Ticket::State;

  void handshake(const std::string& address,
                 const std::string& server,
                 const std::string& name,
                 Deadline deadline);
  std::string open_control(const std::string& host,
                           std::int64_t port,
                           const std::string& server,
                           const std::string& name,
                           Deadline deadline);
  void open_link(const std::string& host,
                 std::int64_t port,
                 const std::string& server,
                 const std::string& key,
                 Deadline deadline);

  const std::shared_ptr<Endpoint::Impl> endpoint_;
  const std::shared_ptr<Credits> credits_;
  std::string peer_;  // for messages
  ServerLimits limits_;
  std::shared_ptr<Link> link_;
  std::unique_ptr<Monitor::Watch> watch_;
  std::vector<PooledMemory> reply_headers_;  // per slot: kReplyHeaderBytes + kInlineReplyBytes
  std::vector<std::unique_ptr<LinkBuffer>> reply_header_buffers_;
  std::atomic<std::uint64_t> next_id_{1};
};

/// One request from its start to its end.
struct Ticket::State {
  /// Sends. reply: memory of the caller's, or nothing for any size.
  State(std::shared_ptr<Connection::Core> connection,
        Op op,
        RequestBuffer buffer,
        std::optional<std::span<std::byte>> reply,
        Deadline until,
        const CallOptions& options);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::span<const std::byte> wait();

 private:
  void post_receives(const CallOptions& options);
  void send(Op op, const CallOptions& options);
  std::span<const std::byte> receive();
  std::span<const std::byte> receive_any_size(const ReplyHeader& header);
  void check_payload(const ReplyHeader& header, std::span<const std::byte> payload) const;
  NetError annotated(const NetError& error) const;

  const std::shared_ptr<Connection::Core> core_;
  const RequestBuffer request_;
  const std::optional<std::span<std::byte>> destination_;
  const Deadline deadline_;
  const std::uint64_t id_;
  const std::uint32_t slot_;
  bool is_done_ = false;
  std::optional<NetError> error_;
  std::span<const std::byte> reply_;
  // The header's memory and buffer: the slot's, or separate ones if a large answer is expected with
  // it.
  std::int64_t inline_bytes_ = kInlineReplyBytes;
  std::byte* header_ = nullptr;
  LinkBuffer* header_buffer_ = nullptr;
  PooledMemory own_header_, own_payload_;
  // Last members, so that they are destroyed first: each ends its use of the memory above.
  std::unique_ptr<LinkBuffer> own_header_buffer_, request_buffer_, bulk_buffer_, payload_buffer_;
};

}  // namespace satrap::net
