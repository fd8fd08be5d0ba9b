#include "src/net/connection_core.h"

#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "src/net/bytes.h"
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
  link_ = std::make_shared<Link>(endpoint_->next_device(), kClientRank, 2, deadline,
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

// See wire.h.
void Connection::Core::handshake(const std::string& address,
                                 const std::string& server,
                                 const std::string& name,
                                 Deadline deadline) {
  const std::size_t space = address.rfind(' ');
  const auto port = parse_number<std::uint16_t>(address.substr(space + 1));
  if (space == std::string::npos || !port) {
    throw NetError(NetFailure::kProtocol, concat(peer_, ": not an address"));
  }
  FrameSocket control(connect_tcp(address.substr(0, space), *port, deadline), kMaxHelloBytes);
  control.wait_send(ByteWriter()
                        .put(kMagic)
                        .put_text(endpoint_->options.token)
                        .put_text(server)
                        .put_text(name)
                        .put_text(link_->mesh().address_for(kServerRank))
                        .bytes(),
                    deadline);
  const std::string answer = control.wait_receive(deadline);
  ByteReader reader(answer);
  if (HelloStatus{reader.get<std::uint8_t>()} != HelloStatus::kAccepted) {
    throw NetError(NetFailure::kRefused,
                   concat(peer_, " refused the connection: ", reader.get_text()));
  }
  limits_.max_in_flight = reader.get<std::int64_t>();
  limits_.slot_bytes = reader.get<std::int64_t>();
  limits_.max_request_bytes = reader.get<std::int64_t>();
  nonce_ = reader.get_text();

  control.set_max_frame_bytes(kMaxControlBytes);
  watch_ = endpoint_->monitor.watch(
      std::move(control), [link = link_.get()](NetFailure failure, const std::string& reason) {
        link->break_off(failure, reason);  // the watch ends before the link
      });
  link_->connect(kServerRank, reader.get_text());
}

}  // namespace satrap::net
