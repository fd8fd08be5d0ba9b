#include "satrap/net/tcp_rendezvous.h"

#include <chrono>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/mutex.h"
#include "satrap/core/text.h"
#include "satrap/net/net_error.h"
#include "src/net/bytes.h"
#include "src/net/handshake.h"
#include "src/net/rendezvous_protocol.h"
#include "src/net/socket.h"

namespace satrap::net {

using store_protocol::Status;

namespace {

constexpr std::int64_t kCallTimeoutMs = 30'000;
constexpr std::int64_t kReachMs = 10'000;  // to connect

ByteWriter request(store_protocol::Op op, const std::string& key) {
  SATRAP_CHECK(!key.empty() && static_cast<std::int64_t>(key.size()) <= Rendezvous::kMaxKeyBytes,
               "store key of ", key.size(), " bytes: ", key);
  ByteWriter writer;
  writer.put(static_cast<std::uint8_t>(op)).put_text(key);
  return writer;
}

struct Answer {
  Status status;
  std::string text;
};

Answer ask(FrameSocket& socket, const std::string& message, Deadline deadline) {
  socket.wait_send(message, deadline);
  const std::string frame = socket.wait_receive(deadline);
  ByteReader reader(frame);
  const Status status{reader.get<std::uint8_t>()};
  return {status, reader.get_text()};
}

}  // namespace

class TcpRendezvous::Impl {
 public:
  Impl(std::string host, std::int64_t port, std::string token, Deadline deadline)
      : host_(std::move(host)), port_(port), token_(std::move(token)), stops_(deadline) {
    socket_ = std::make_unique<FrameSocket>(connect(deadline));
  }

  // Opens a connection; retries while nothing listens there that knows the token.
  FrameSocket connect(Deadline deadline) const {
    constexpr auto kRetry = std::chrono::milliseconds(20);
    for (;;) {
      try {
        // An attempt does not use up the deadline: the store may be up only now, or busy.
        FrameSocket socket(connect_tcp(host_, port_, deadline.at_most_ms(kReachMs)),
                           store_protocol::kMaxFrameBytes);
        introduce(socket, store_protocol::kMagic, token_, "", deadline.at_most_ms(kReachMs));
        return socket;
      } catch (const NetError& error) {
        if (error.failure() == NetFailure::kRefused) {
          throw NetError(NetFailure::kRefused,
                         concat(name(), " refused the connection: ", error.what()));
        }
        if (error.failure() == NetFailure::kStopped) throw;
        if (deadline.has_passed()) {
          throw NetError(NetFailure::kTimeout, concat(name(), " not reached: ", error.what()));
        }
      }
      pause_before_retry(kRetry, deadline);
    }
  }

  // One exchange on the shared connection.
  Answer call(const std::string& message, bool may_repeat) {
    const MutexLock lock(mutex_);
    const Deadline deadline = stops_.extended_to_ms(kCallTimeoutMs);
    for (bool again = may_repeat;; again = false) {
      try {
        if (!socket_) socket_ = std::make_unique<FrameSocket>(connect(deadline));
        return ask(*socket_, message, deadline);
      } catch (const NetError& error) {
        socket_.reset();
        if (!again || error.failure() != NetFailure::kClosed) throw;
      }
    }
  }

  std::string name() const { return concat("store tcp://", host_, ":", port_); }

 private:
  const std::string host_;
  const std::int64_t port_;
  const std::string token_;
  const Deadline stops_;  // what ends the first connection's search ends every call
  Mutex mutex_;
  std::unique_ptr<FrameSocket> socket_ SATRAP_GUARDED_BY(mutex_);
};

TcpRendezvous::TcpRendezvous(std::string host,
                             std::int64_t port,
                             std::string token,
                             Deadline deadline)
    : impl_(std::make_unique<Impl>(std::move(host), port, std::move(token), deadline)) {}
TcpRendezvous::~TcpRendezvous() = default;

void TcpRendezvous::set(const std::string& key, const std::string& value) {
  SATRAP_CHECK(static_cast<std::int64_t>(value.size()) <= kMaxValueBytes, "store value of '", key,
               "' has ", value.size(), " bytes");
  impl_->call(request(store_protocol::Op::kSet, key).put_text(value).bytes(), true);
}

std::optional<std::string> TcpRendezvous::get(const std::string& key) {
  Answer answer = impl_->call(request(store_protocol::Op::kGet, key).bytes(), true);
  if (answer.status != Status::kOk) return std::nullopt;
  return std::move(answer.text);
}

// On a separate connection, so that other threads can set values meanwhile.
std::string TcpRendezvous::wait(const std::string& key, Deadline deadline) {
  constexpr std::int64_t kAnswerMs = 5000;  // for the server's own "timed out" to arrive
  for (;;) {
    try {
      FrameSocket socket = impl_->connect(deadline);
      const std::int64_t timeout_ms = deadline.remaining_ms();
      Answer answer = ask(socket, request(store_protocol::Op::kWait, key).put(timeout_ms).bytes(),
                          deadline.extended_to_ms(timeout_ms + kAnswerMs));
      if (answer.status == Status::kOk) return std::move(answer.text);
      throw NetError(NetFailure::kTimeout, concat("nobody has set '", key, "' in ", impl_->name()));
    } catch (const NetError& error) {
      if (error.failure() != NetFailure::kClosed) throw;
    }
  }
}

std::int64_t TcpRendezvous::add(const std::string& key, std::int64_t amount) {
  const Answer answer =
      impl_->call(request(store_protocol::Op::kAdd, key).put(amount).bytes(), false);
  return parse_number<std::int64_t>(answer.text).value_or(0);
}

void TcpRendezvous::erase(const std::string& key) {
  impl_->call(request(store_protocol::Op::kErase, key).bytes(), true);
}

}  // namespace satrap::net
