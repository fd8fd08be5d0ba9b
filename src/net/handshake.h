#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "satrap/net/deadline.h"
#include "src/net/socket.h"

namespace satrap::net {

// How every connection of a job begins, as messages of FrameSocket. Neither end sends the token;
// each proves to the other that it knows it (proof.h), over both ends' nonces, so that what was
// heard on one connection is worth nothing on another.
//
//   client  magic (8 bytes), nonce
//   server  0, nonce
//   client  proof, request
//   server  0, proof, answer
// Instead of its message the server may send 1 and the reason why it refuses, and hang up.

inline constexpr std::int64_t kMaxHandshakeBytes =
    4096;  // of a message; all there is of a stranger

/// The client's end. Returns the answer to `request`. Throws NetError: kRefused if the server
/// refuses, kProtocol if it does not know the token, kTimeout, kClosed, kStopped.
std::string introduce(FrameSocket& socket,
                      std::uint64_t magic,
                      std::string_view token,
                      std::string_view request,
                      Deadline deadline);

/// The server's end of one connection. Never blocks. A client that sends anything before its turn
/// is found out by the message that then makes no sense.
class Visitor {
 public:
  Visitor(Fd fd, std::uint64_t magic, Deadline deadline)
      : socket_(std::move(fd), kMaxHandshakeBytes), magic_(magic), deadline_(deadline) {}

  int fd() const { return socket_.fd(); }
  Deadline deadline() const { return deadline_; }
  std::string peer() const { return socket_.peer(); }

  /// Goes on with what has arrived. Returns true once, when the client has proved that it knows the
  /// token. Throws NetError for one to be dropped, kClosed if it left by itself.
  bool advance(std::string_view token);

  /// After that: what the client wants.
  const std::string& request() const { return request_; }

  /// Lets it in. Throws NetError if it has gone.
  FrameSocket accept(std::string_view token, std::string_view answer);

  /// Tells it why not, if it still listens, and throws that as NetError(kRefused).
  [[noreturn]] void refuse(const std::string& reason);

 private:
  void greet(std::string_view hello);
  void check(std::string_view message, std::string_view token);

  FrameSocket socket_;
  std::uint64_t magic_;
  Deadline deadline_;
  std::string client_nonce_, server_nonce_, request_;
};

}  // namespace satrap::net
