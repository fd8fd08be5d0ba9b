// Both ends of the handshake. The first byte chooses who sends the rest: a stranger to a server, a
// stranger in the place of a server, or a client that knows the token, whose request this is. Only
// the last is let in.
#include <string>

#include <sys/socket.h>

#include "src/net/bytes.h"
#include "src/net/handshake.h"
#include "src/net/proof.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace satrap::net;
using satrap::fuzz::fail;
using satrap::fuzz::is_refused;

constexpr std::uint64_t kMagic = 77;
constexpr const char* kToken = "a secret of the job";

struct Pair {
  Pair() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0)
      fail("no sockets");
    ours = Fd(fds[0]);
    theirs = Fd(fds[1]);
  }
  void send(const std::string& bytes, bool is_all) const {
    if (::send(theirs.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0)
      fail("nothing was sent");
    if (is_all) shutdown(theirs.get(), SHUT_WR);
  }
  Fd ours, theirs;
};

std::string framed(const std::string& message) { return ByteWriter().put_text(message).bytes(); }

bool is_let_in(Visitor& visitor) {
  while (!visitor.advance(kToken)) {
  }
  return true;
}

void visit_as_a_stranger(const std::string& bytes) {
  Pair pair;
  pair.send(bytes, true);
  Visitor visitor(std::move(pair.ours), kMagic, Deadline::after_ms(5000));
  if (!is_refused([&] { is_let_in(visitor); })) fail("a stranger was let in");
}

void visit_with_the_token(const std::string& request) {
  Pair pair;
  Visitor visitor(std::move(pair.ours), kMagic, Deadline::after_ms(5000));
  const std::string mine(kNonceBytes, 'n');
  pair.send(framed(ByteWriter().put(kMagic).bytes() + mine), false);
  visitor.advance(kToken);
  FrameSocket socket(std::move(pair.theirs), kMaxHandshakeBytes);
  const std::string theirs = socket.wait_receive(Deadline::after_ms(5000)).substr(1);
  const std::string proof = proof_of(kToken, {Role::kClient, kMagic, mine, theirs, request});
  socket.wait_send(proof + request, Deadline::after_ms(5000));
  if (is_refused([&] { is_let_in(visitor); }) || visitor.request() != request) {
    fail("a client was not let in as it was");
  }
}

void introduce_to_a_stranger(const std::string& bytes) {
  Pair pair;
  pair.send(bytes, true);
  FrameSocket socket(std::move(pair.ours), kMaxHandshakeBytes);
  const bool refused =
      is_refused([&] { introduce(socket, kMagic, kToken, "a request", Deadline::after_ms(5000)); });
  if (!refused) fail("a stranger was taken for the server");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 2048) return -1;
  const std::string bytes(satrap::fuzz::text_of(data + 1, size - 1));
  if (data[0] % 3 == 0) visit_as_a_stranger(bytes);
  if (data[0] % 3 == 1) visit_with_the_token(bytes);
  if (data[0] % 3 == 2) introduce_to_a_stranger(bytes);
  return 0;
}
