#include "satrap/net/connection.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "satrap/core/error.h"
#include "src/net/connection_core.h"
#include "src/net/socket.h"

namespace satrap::net {
namespace {

// How long one attempt may take: a server that dies during it must not use up the whole deadline.
constexpr std::int64_t kAttemptMs = 5000;

}  // namespace

Connection::Connection(const Endpoint& endpoint,
                       Rendezvous& store,
                       const std::string& server,
                       const std::string& name,
                       Deadline deadline) {
  auto pause = std::chrono::milliseconds(1);
  constexpr auto kMaxPause = std::chrono::milliseconds(200);
  for (;;) {
    const std::string address = store.wait(address_key(server), deadline);
    try {
      core_ = std::make_shared<Core>(endpoint.impl(), address, server, name,
                                     deadline.at_most_ms(kAttemptMs));
      return;
    } catch (const NetError& error) {
      if (!error.is_connection_lost()) throw;
      if (deadline.has_passed()) {
        throw NetError(NetFailure::kTimeout,
                       concat("server '", server, "' not reached: ", error.what()));
      }
    }
    pause_before_retry(pause, deadline);
    pause = std::min(2 * pause, kMaxPause);
  }
}

Connection::Connection(const Endpoint& endpoint,
                       const std::string& address,
                       const std::string& server,
                       const std::string& name,
                       Deadline deadline)
    : core_(std::make_shared<Core>(endpoint.impl(), address, server, name, deadline)) {}

Connection::~Connection() {
  if (core_) core_->close("done");
}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&& other) noexcept {
  std::swap(core_, other.core_);
  return *this;
}

Ticket Connection::call(Op op,
                        const RequestBuffer& request,
                        std::span<std::byte> reply,
                        Deadline deadline,
                        const CallOptions& options) {
  check_size(request);
  return Ticket(std::make_unique<Ticket::State>(core_, op, request, reply, deadline, options));
}

Ticket Connection::call_for_any_size(Op op,
                                     const RequestBuffer& request,
                                     Deadline deadline,
                                     const CallOptions& options) {
  check_size(request);
  return Ticket(
      std::make_unique<Ticket::State>(core_, op, request, std::nullopt, deadline, options));
}

void Connection::check_size(const RequestBuffer& request) const {
  const auto bytes = static_cast<std::int64_t>(request.payload().size());
  if (bytes <= max_request_bytes()) return;
  throw NetError(NetFailure::kRefused,
                 concat("a request of ", bytes, " bytes, and the server takes at most ",
                        max_request_bytes(), ": request less at a time, or use more servers"));
}

void Connection::close(const std::string& reason) { core_->close(reason); }
bool Connection::is_open() const { return !core_->link().breaker()->is_tripped(); }
std::int64_t Connection::max_in_flight() const { return core_->limits().max_in_flight; }
std::int64_t Connection::max_request_bytes() const { return core_->limits().max_request_bytes; }

}  // namespace satrap::net
