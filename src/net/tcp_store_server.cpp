#include <algorithm>
#include <atomic>
#include <iterator>
#include <list>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/text.h"
#include "satrap/core/thread_name.h"
#include "satrap/net/net_error.h"
#include "satrap/net/tcp_store.h"
#include "src/net/bytes.h"
#include "src/net/poller.h"
#include "src/net/socket.h"
#include "src/net/store_protocol.h"
#include "src/net/token.h"

namespace satrap::net {

using store_protocol::Status;

namespace {

constexpr std::int64_t kHelloTimeoutMs = 5000;
constexpr std::int64_t kMaxUnsentBytes = 4 * store_protocol::kMaxFrameBytes;
constexpr std::size_t kMaxClients = 4096;

struct Wait {
  std::string key;
  Deadline deadline;
};

struct Client {
  explicit Client(Fd fd)
      : socket(std::move(fd), store_protocol::kMaxHelloBytes),
        hello_deadline(Deadline::after_ms(kHelloTimeoutMs)) {}
  FrameSocket socket;
  bool is_known = false;  // has shown the token
  Deadline hello_deadline;
  std::optional<Wait> wait;
};

void reply(Client& client, Status status, std::string_view text) {
  client.socket.send(ByteWriter().put(static_cast<std::uint8_t>(status)).put_text(text).bytes());
}

}  // namespace

class TcpStoreServer::Impl {
 public:
  Impl(const std::string& host, std::int64_t port, std::string token)
      : token_(std::move(token)),
        address_(resolve_address(host)),
        listener_(listen_tcp(address_, port)) {
    const bool is_v6 = address_.find(':') != std::string::npos;
    url = concat("tcp://", is_v6 ? "[" : "", address_, is_v6 ? "]:" : ":", local_port(listener_));
    thread_ = std::thread([this] { run(); });
  }

  ~Impl() {
    stop_ = true;
    wake_.notify();
    thread_.join();
  }

  std::int64_t port() const { return local_port(listener_); }
  std::string url;

 private:
  void run() {
    set_thread_name("net-store");
    while (!stop_) {
      std::vector<pollfd> fds{{wake_.fd(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const Client& client : clients_) {
        const short write = client.socket.has_unsent() ? POLLOUT : 0;
        fds.push_back({client.socket.fd(), static_cast<short>(POLLIN | write), 0});
      }
      poll(fds.data(), fds.size(), static_cast<int>(next_deadline().remaining_ms()));
      if (stop_) return;
      std::size_t i = 2;
      for (auto client = clients_.begin(); client != clients_.end(); ++i) {
        const auto current = client++;
        serve(current, fds[i].revents);
      }
      if ((fds[1].revents & POLLIN) != 0) accept();
    }
  }

  Deadline next_deadline() const {
    Deadline next = Deadline::after_ms(60'000);
    for (const Client& client : clients_) {
      if (!client.is_known) next = Deadline(std::min(next.at(), client.hello_deadline.at()));
      if (client.wait) next = Deadline(std::min(next.at(), client.wait->deadline.at()));
    }
    return next;
  }

  void accept() {
    while (Fd fd = accept_tcp(listener_)) {
      if (clients_.size() >= kMaxClients) {
        log_warning("store {}: more than {} clients, one refused", url, kMaxClients);
        continue;
      }
      clients_.emplace_back(std::move(fd));
    }
  }

  // Serves one client. Its errors end only its own connection.
  void serve(std::list<Client>::iterator client, short events) {
    try {
      if ((events & POLLOUT) != 0) client->socket.flush();
      if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) {
        for (const std::string& frame : client->socket.receive()) handle(*client, frame);
      }
      if (client->socket.unsent_bytes() > kMaxUnsentBytes) {
        throw NetError(NetFailure::kProtocol, "sends requests but does not read the answers");
      }
      if (!client->is_known && client->hello_deadline.has_passed()) {
        throw NetError(NetFailure::kRefused, "sent nothing");
      }
      if (client->wait && client->wait->deadline.has_passed()) {
        reply(*client, Status::kTimeout, "");
        client->wait.reset();
      }
    } catch (const NetError& error) {
      if (error.failure() != NetFailure::kClosed) {
        log_warning("store {}: client dropped: {}", url, error.what());
      }
      clients_.erase(client);
    }
  }

  void handle(Client& client, const std::string& frame) {
    ByteReader reader(frame);
    if (!client.is_known) {
      greet(client, reader);
      return;
    }
    const store_protocol::Op op{reader.get<std::uint8_t>()};
    const std::string key = reader.get_text();
    switch (op) {
      case store_protocol::Op::kSet:
        assign(key, reader.get_text());
        reply(client, Status::kOk, "");
        return;
      case store_protocol::Op::kGet:
      case store_protocol::Op::kWait: {
        const auto found = values_.find(key);
        if (found != values_.end()) {
          reply(client, Status::kOk, found->second);
        } else if (op == store_protocol::Op::kGet) {
          reply(client, Status::kMissing, "");
        } else {
          client.wait = Wait{key, Deadline::after_ms(reader.get<std::int64_t>())};
        }
        return;
      }
      case store_protocol::Op::kAdd: {
        std::int64_t sum = 0;
        if (const auto found = values_.find(key); found != values_.end()) {
          sum = parse_number<std::int64_t>(found->second).value_or(0);
        }
        assign(key, std::to_string(sum + reader.get<std::int64_t>()));
        reply(client, Status::kOk, values_[key]);
        return;
      }
      case store_protocol::Op::kErase:
        values_.erase(key);
        reply(client, Status::kOk, "");
        return;
    }
    throw NetError(NetFailure::kProtocol, concat("unknown operation ", static_cast<int>(op)));
  }

  void greet(Client& client, ByteReader& reader) {
    std::string refusal;
    if (reader.get<std::uint64_t>() != store_protocol::kMagic) {
      refusal = "not a store client of this version";
    } else if (!tokens_match(reader.get_text(), token_)) {
      refusal = "wrong token";
    }
    if (!refusal.empty()) {
      reply(client, Status::kRefused, refusal);
      throw NetError(NetFailure::kRefused, refusal);
    }
    client.is_known = true;
    client.socket.set_max_frame_bytes(store_protocol::kMaxFrameBytes);
    reply(client, Status::kOk, "");
  }

  void assign(const std::string& key, std::string value) {
    values_[key] = std::move(value);
    for (Client& client : clients_) {
      if (!client.wait || client.wait->key != key) continue;
      client.wait.reset();
      try {
        reply(client, Status::kOk, values_[key]);
      } catch (const NetError& error) {
        log_debug("store {}: {}", url, error.what());  // its own turn will find it broken
      }
    }
  }

  const std::string token_;
  const std::string address_;
  Fd listener_;
  WakeUp wake_;
  std::atomic<bool> stop_{false};
  std::list<Client> clients_;                  // of the thread alone
  std::map<std::string, std::string> values_;  // of the thread alone
  std::thread thread_;
};

TcpStoreServer::TcpStoreServer(const std::string& host, std::int64_t port, std::string token)
    : impl_(std::make_unique<Impl>(host, port, std::move(token))) {}
TcpStoreServer::~TcpStoreServer() = default;
std::int64_t TcpStoreServer::port() const { return impl_->port(); }
const std::string& TcpStoreServer::url() const { return impl_->url; }

}  // namespace satrap::net
