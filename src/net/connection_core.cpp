#include "src/net/connection_core.h"

#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "src/net/bytes.h"
#include "src/net/handshake.h"
#include "src/net/socket.h"

namespace satrap::net {

Connection::Core::Core(std::shared_ptr<Endpoint::Impl> endpoint,
                       const std::string& address,
                       const std::string& server,
                       const std::string& name,
                       Deadline deadline)
    : endpoint_(std::move(endpoint)),
      credits_(std::make_shared<Credits>()),
      peer_(concat("server '", server, "' at ", address)) {
  link_ = std::make_shared<Link>(endpoint_->next_device(), kClientRank, 2,
                                 [credits = credits_] { credits->wake(); });
  handshake(address, server, name, deadline);
  for (std::int64_t i = 0; i < limits_.max_in_flight; ++i) {
    constexpr std::int64_t kBytes = kReplyHeaderBytes + kInlineReplyBytes;
    reply_headers_.push_back(endpoint_->pool.take(kBytes));
    reply_header_buffers_.push_back(
        std::make_unique<LinkBuffer>(link_, reply_headers_.back().data(), kBytes));
  }
  credits_->fill(limits_.max_in_flight);
}

Connection::Core::~Core() {
  watch_.reset();
  link_->close(NetFailure::kClosed, "connection closed");
  reply_header_buffers_.clear();
  for (PooledMemory& memory : reply_headers_) endpoint_->pool.give_back(std::move(memory));
}

void Connection::Core::close(const std::string& reason) {
  watch_->say_goodbye(reason);
  link_->close(NetFailure::kClosed, reason);
}

void Connection::Core::handshake(const std::string& address,
                                 const std::string& server,
                                 const std::string& name,
                                 Deadline deadline) {
  const std::size_t space = address.rfind(' ');
  const auto port = parse_number<std::uint16_t>(address.substr(space + 1));
  if (space == std::string::npos || !port) {
    throw NetError(NetFailure::kProtocol, concat(peer_, ": not an address"));
  }
  const std::string host = address.substr(0, space);
  const std::string key = open_control(host, *port, server, name, deadline);
  try {
    open_link(host, *port, server, key, deadline.unless(link_->breaker()->tripped()));
  } catch (const NetError& error) {
    link_->breaker()->check();  // the control socket may have shown why
    if (error.failure() != NetFailure::kRefused) throw;
    throw NetError(NetFailure::kClosed, error.what());  // the server has given this attempt up
  }
}

// See wire.h.
std::string Connection::Core::open_control(const std::string& host,
                                           std::int64_t port,
                                           const std::string& server,
                                           const std::string& name,
                                           Deadline deadline) {
  FrameSocket control(connect_tcp(host, port, deadline), kMaxHandshakeBytes);
  std::string answer;
  try {
    answer = introduce(control, kMagic, endpoint_->options.token,
                       ByteWriter()
                           .put(static_cast<std::uint8_t>(Purpose::kControl))
                           .put_text(server)
                           .put_text(name)
                           .bytes(),
                       deadline);
  } catch (const NetError& error) {
    if (error.failure() != NetFailure::kRefused) throw;
    throw NetError(NetFailure::kRefused, concat(peer_, " refused the connection: ", error.what()));
  }
  ByteReader reader(answer);
  limits_.max_in_flight = reader.get<std::int64_t>();
  limits_.slot_bytes = reader.get<std::int64_t>();
  limits_.max_request_bytes = reader.get<std::int64_t>();
  control.set_max_frame_bytes(kMaxControlBytes);
  watch_ = endpoint_->monitor.watch(
      std::move(control), [link = link_.get()](NetFailure failure, const std::string& reason) {
        link->breaker()->trip(failure, reason);  // the watch ends before the link
      });
  return reader.get_text();
}

void Connection::Core::open_link(const std::string& host,
                                 std::int64_t port,
                                 const std::string& server,
                                 const std::string& key,
                                 Deadline deadline) {
  FrameSocket socket(connect_tcp(host, port, deadline), kMaxHandshakeBytes);
  introduce(socket, kMagic, endpoint_->options.token,
            ByteWriter()
                .put(static_cast<std::uint8_t>(Purpose::kLink))
                .put_text(server)
                .put_text(key)
                .bytes(),
            deadline);
  link_->adopt(kServerRank, socket.release());
}

}  // namespace satrap::net
