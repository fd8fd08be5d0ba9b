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
#include "satrap/core/thread_group.h"
#include "satrap/net/net_error.h"
#include "satrap/net/tcp_rendezvous.h"
#include "src/net/bytes.h"
#include "src/net/counter.h"
#include "src/net/door.h"
#include "src/net/poller.h"
#include "src/net/proof.h"
#include "src/net/rendezvous_protocol.h"
#include "src/net/socket.h"

namespace satrap::net {

using store_protocol::Status;

namespace {

constexpr std::int64_t kMaxUnsentBytes = 4 * store_protocol::kMaxFrameBytes;
constexpr std::size_t kMaxClients = 4096;
constexpr std::int64_t kMaxWaitMs = std::int64_t{365} * 24 * 3600 * 1000;
constexpr std::size_t kMaxStoredBytes = std::size_t{256} << 20;  // keys and values

struct Wait {
  std::string key;
  Deadline deadline;
};

struct Client {
  explicit Client(FrameSocket connection) : socket(std::move(connection)) {
    socket.set_max_frame_bytes(store_protocol::kMaxFrameBytes);
  }
  FrameSocket socket;
  std::optional<Wait> wait{};
};

void reply(Client& client, Status status, std::string_view text) {
  client.socket.send(ByteWriter().put(static_cast<std::uint8_t>(status)).put_text(text).bytes());
}

std::string url_of(const std::string& address, std::int64_t port) {
  const bool is_v6 = address.find(':') != std::string::npos;
  return concat("tcp://", is_v6 ? "[" : "", address, is_v6 ? "]:" : ":", port);
}

}  // namespace

class TcpRendezvousServer::Impl {
 public:
  Impl(const std::string& address, Fd listener, std::string token)
      : url(url_of(address, local_port(listener))),
        door_(
            std::move(listener),
            {.magic = store_protocol::kMagic, .token = std::move(token), .name = "store " + url}) {
    thread_ = start_thread("net-store", [this] { run(); });
  }

  ~Impl() {
    stop_ = true;
    wake_.notify();
    thread_.join();
  }

  std::int64_t port() const { return door_.port(); }
  const std::string url;

 private:
  // In every round, each client gets one turn: one message.
  void run() {
    while (!stop_) {
      std::vector<pollfd> fds{{wake_.fd(), POLLIN, 0}};
      for (const Client& client : clients_) {
        const short write = client.socket.has_unsent() ? POLLOUT : 0;
        fds.push_back({client.socket.fd(), static_cast<short>(POLLIN | write), 0});
      }
      door_.watch(fds);
      poll(fds.data(), fds.size(), static_cast<int>(next_deadline().remaining_ms()));
      if (stop_) return;
      std::size_t i = 1;
      for (auto client = clients_.begin(); client != clients_.end(); ++i) {
        const auto current = client++;
        serve(current, fds[i].revents);
      }
      door_.serve(fds, [this](Visitor& visitor) { enter(visitor); });
    }
  }

  Deadline next_deadline() const {
    Deadline next = door_.next();
    for (const Client& client : clients_) {
      if (client.wait) next = Deadline(std::min(next.at(), client.wait->deadline.at()));
    }
    return next;
  }

  void enter(Visitor& visitor) {
    if (clients_.size() >= kMaxClients) {
      visitor.refuse(concat("there are ", clients_.size(), " clients already"));
    }
    clients_.emplace_back(visitor.accept(door_.token(), ""));
  }

  // Serves one client. Its errors end only its own connection.
  void serve(std::list<Client>::iterator client, short events) {
    try {
      if ((events & POLLOUT) != 0) client->socket.flush();
      if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) {
        if (const auto frame = client->socket.receive()) handle(*client, *frame);
      }
      if (client->socket.unsent_bytes() > kMaxUnsentBytes) {
        throw NetError(NetFailure::kProtocol, "sends requests but does not read the answers");
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
          const auto timeout_ms = reader.get<std::int64_t>();
          client.wait =
              Wait{key, Deadline::after_ms(std::clamp<std::int64_t>(timeout_ms, 0, kMaxWaitMs))};
        }
        return;
      }
      case store_protocol::Op::kAdd: {
        const auto found = values_.find(key);
        const std::int64_t sum =
            counter_after(found != values_.end() ? found->second : "0", reader.get<std::int64_t>());
        assign(key, std::to_string(sum));
        reply(client, Status::kOk, values_[key]);
        return;
      }
      case store_protocol::Op::kErase:
        erase(key);
        reply(client, Status::kOk, "");
        return;
    }
    throw NetError(NetFailure::kProtocol, concat("unknown operation ", static_cast<int>(op)));
  }

  void assign(const std::string& key, std::string value) {
    if (stored_bytes_ + key.size() + value.size() > kMaxStoredBytes) {
      throw NetError(NetFailure::kProtocol,
                     concat("the store is full: it keeps at most ", kMaxStoredBytes >> 20, " MiB"));
    }
    erase(key);
    stored_bytes_ += key.size() + value.size();
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

  void erase(const std::string& key) {
    const auto found = values_.find(key);
    if (found == values_.end()) return;
    stored_bytes_ -= key.size() + found->second.size();
    values_.erase(found);
  }

  Door door_;
  WakeUp wake_;
  std::atomic<bool> stop_{false};
  std::list<Client> clients_;                  // of the thread alone
  std::map<std::string, std::string> values_;  // of the thread alone
  std::size_t stored_bytes_ = 0;
  std::thread thread_;
};

TcpRendezvousServer::TcpRendezvousServer(const std::string& host,
                                         std::int64_t port,
                                         std::string token) {
  const std::string address = resolve_address(host);
  check_token(token, address);
  impl_ = std::make_unique<Impl>(address, listen_tcp(address, port), std::move(token));
}
TcpRendezvousServer::~TcpRendezvousServer() = default;
std::int64_t TcpRendezvousServer::port() const { return impl_->port(); }
const std::string& TcpRendezvousServer::url() const { return impl_->url; }

}  // namespace satrap::net
