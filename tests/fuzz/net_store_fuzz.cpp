// The store: whatever a client that knows the token sends costs its own connection and nothing
// else. The bytes are what it sends after the handshake; then another client must still be served.
#include <string>

#include <poll.h>
#include <sys/socket.h>

#include "satrap/core/log.h"
#include "satrap/net/tcp_rendezvous.h"
#include "src/net/handshake.h"
#include "src/net/rendezvous_protocol.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace satrap::net;

constexpr const char* kToken = "a secret of the job";

void send_and_hang_up(std::int64_t port, std::string_view bytes) {
  const Deadline deadline = Deadline::after_ms(5000);
  FrameSocket socket(connect_tcp("127.0.0.1", port, deadline), store_protocol::kMaxFrameBytes);
  introduce(socket, store_protocol::kMagic, kToken, "", deadline);
  const Fd fd = socket.release();
  send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  shutdown(fd.get(), SHUT_WR);
  char answer[4096];
  while (wait_ready(fd.get(), POLLIN, deadline) && recv(fd.get(), answer, sizeof(answer), 0) > 0) {
  }
  if (deadline.has_passed()) satrap::fuzz::fail("the connection was not ended");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  satrap::set_log_level(satrap::LogLevel::kOff);
  const TcpRendezvousServer server("127.0.0.1", 0, kToken);
  send_and_hang_up(server.port(), satrap::fuzz::text_of(data, size));
  TcpRendezvous store("127.0.0.1", server.port(), kToken, Deadline::after_ms(5000));
  store.set("a key of another client", "1");
  if (store.add("a key of another client", 2) != 3)
    satrap::fuzz::fail("another client is not served");
  return 0;
}
