#include "src/net/handshake.h"

#include <utility>

#include "satrap/core/error.h"
#include "src/net/bytes.h"
#include "src/net/proof.h"

namespace satrap::net {
namespace {

constexpr std::uint8_t kWelcome = 0, kRefusal = 1;

// The rest of a server's message. Throws what it says if it refuses.
std::string_view welcome_in(std::string_view message) {
  ByteReader reader(message);
  if (reader.get<std::uint8_t>() == kWelcome) return reader.rest();
  throw NetError(NetFailure::kRefused, reader.get_text());
}

std::string_view take(std::string_view& rest, std::size_t count) {
  if (rest.size() < count) throw NetError(NetFailure::kProtocol, "a handshake ends early");
  const std::string_view taken = rest.substr(0, count);
  rest.remove_prefix(count);
  return taken;
}

}  // namespace

std::string introduce(FrameSocket& socket,
                      std::uint64_t magic,
                      std::string_view token,
                      std::string_view request,
                      Deadline deadline) {
  const std::string mine = random_nonce();
  socket.wait_send(ByteWriter().put(magic).bytes() + mine, deadline);
  const std::string greeting = socket.wait_receive(deadline);
  const std::string_view theirs = welcome_in(greeting);
  if (theirs.size() != kNonceBytes) {
    throw NetError(NetFailure::kProtocol, "the server's greeting makes no sense");
  }
  const std::string proof = proof_of(token, {Role::kClient, magic, mine, theirs, request});
  socket.wait_send(proof + std::string(request), deadline);
  const std::string message = socket.wait_receive(deadline);
  std::string_view rest = welcome_in(message);
  const std::string_view shown = take(rest, kProofBytes);
  if (!is_same_secret(shown, proof_of(token, {Role::kServer, magic, mine, theirs, rest}))) {
    throw NetError(NetFailure::kProtocol, "what answers there does not know the job's token");
  }
  return std::string(rest);
}

bool Visitor::advance(std::string_view token) {
  while (const std::optional<std::string> message = socket_.receive()) {
    if (server_nonce_.empty()) {
      greet(*message);
    } else {
      check(*message, token);
      return true;
    }
  }
  return false;
}

void Visitor::greet(std::string_view hello) {
  ByteReader reader(hello);
  if (reader.get<std::uint64_t>() != magic_) {
    refuse("it is not a client of this version; all processes of a job run the same satrap");
  }
  if (reader.rest().size() != kNonceBytes) {
    throw NetError(NetFailure::kProtocol, "its greeting makes no sense");
  }
  client_nonce_ = reader.rest();
  server_nonce_ = random_nonce();
  socket_.send(ByteWriter().put(kWelcome).bytes() + server_nonce_);
}

void Visitor::check(std::string_view message, std::string_view token) {
  const std::string_view shown = take(message, kProofBytes);
  const Statement statement{Role::kClient, magic_, client_nonce_, server_nonce_, message};
  if (!is_same_secret(shown, proof_of(token, statement))) refuse("wrong token");
  request_ = message;
}

FrameSocket Visitor::accept(std::string_view token, std::string_view answer) {
  const Statement statement{Role::kServer, magic_, client_nonce_, server_nonce_, answer};
  socket_.send(ByteWriter().put(kWelcome).bytes() + proof_of(token, statement) +
               std::string(answer));
  if (socket_.has_unsent()) {  // a fresh socket has room for a few bytes
    throw NetError(NetFailure::kProtocol, "it does not read its answers");
  }
  return std::move(socket_);
}

void Visitor::refuse(const std::string& reason) {
  try {
    socket_.send(ByteWriter().put(kRefusal).put_text(reason).bytes());
  } catch (const NetError&) {
    throw NetError(NetFailure::kRefused, reason);  // it has gone, and needs no reason
  }
  throw NetError(NetFailure::kRefused, reason);
}

}  // namespace satrap::net
