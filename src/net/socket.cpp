#include "src/net/socket.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/net/net_error.h"

namespace satrap::net {
namespace {

std::string numeric_address(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return {};
  }
  return text.data();
}

// The address of the interface called `name`, or nothing.
std::string interface_address(const std::string& name) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      if (name != entry->ifa_name || entry->ifa_addr == nullptr) continue;
      if (entry->ifa_addr->sa_family != family) continue;
      return numeric_address(entry->ifa_addr,
                             family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    }
  }
  return {};
}

struct AddressList {
  addrinfo* first = nullptr;
  AddressList(const std::string& host, std::int64_t port, int flags) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &first);
    if (failed != 0) {
      throw Error(
          ErrorCode::kInvalidConfig,
          concat("'", host, "' is neither an address nor a known name: ", gai_strerror(failed)));
    }
  }
  ~AddressList() { freeaddrinfo(first); }
  AddressList(const AddressList&) = delete;
  AddressList& operator=(const AddressList&) = delete;
};

std::string error_text(int error) { return std::strerror(error); }

void set_no_delay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

void Fd::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

std::string resolve_address(const std::string& host) {
  if (const std::string address = interface_address(host); !address.empty()) return address;
  const AddressList list(host, 0, 0);
  return numeric_address(list.first->ai_addr, list.first->ai_addrlen);
}

Fd listen_tcp(const std::string& address, std::int64_t port) {
  const AddressList list(address, port, AI_NUMERICHOST | AI_PASSIVE);
  Fd fd(socket(list.first->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  constexpr int kBacklog = 128;
  if (!fd || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      bind(fd.get(), list.first->ai_addr, list.first->ai_addrlen) != 0 ||
      listen(fd.get(), kBacklog) != 0) {
    throw NetError(NetFailure::kRefused,
                   concat("cannot listen on ", address, " port ", port, ": ", error_text(errno)));
  }
  return fd;
}

std::int64_t local_port(const Fd& fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  SATRAP_CHECK(getsockname(fd.get(), address, &length) == 0, error_text(errno));
  return ntohs(address->sa_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(address)->sin_port);
}

Fd connect_tcp(const std::string& host, std::int64_t port, Deadline deadline) {
  const AddressList list(host, port, 0);
  std::string reason;
  for (const addrinfo* entry = list.first; entry != nullptr; entry = entry->ai_next) {
    Fd fd(socket(entry->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) continue;
    int error = 0;
    if (connect(fd.get(), entry->ai_addr, entry->ai_addrlen) != 0) error = errno;
    if (error == EINPROGRESS) {
      if (!wait_ready(fd.get(), POLLOUT, deadline)) {
        throw NetError(NetFailure::kTimeout, concat("no answer from ", host, " port ", port));
      }
      socklen_t length = sizeof(error);
      getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    }
    if (error == 0) {
      set_no_delay(fd.get());
      return fd;
    }
    reason = error_text(error);
  }
  throw NetError(NetFailure::kClosed,
                 concat("cannot connect to ", host, " port ", port, ": ", reason));
}

Fd accept_tcp(const Fd& listener) {
  Fd fd(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd) set_no_delay(fd.get());
  return fd;
}

bool wait_ready(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd entry{fd, events, 0};
    const int ready =
        poll(&entry, 1, static_cast<int>(deadline.at_most_ms(1 << 30).remaining_ms()));
    if (ready > 0) return true;
    if (ready == 0 && deadline.has_passed()) return false;
    if (ready < 0 && errno != EINTR) {
      throw NetError(NetFailure::kClosed, concat("poll: ", error_text(errno)));
    }
  }
}

void FrameSocket::send(std::string_view frame) {
  const auto length = static_cast<std::uint32_t>(frame.size());
  out_.append(reinterpret_cast<const char*>(&length), sizeof(length));
  out_.append(frame);
  flush();
}

void FrameSocket::flush() {
  while (!out_.empty()) {
    const ssize_t written = ::send(fd_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (written >= 0) {
      out_.erase(0, static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      throw NetError(NetFailure::kClosed, concat("connection lost: ", error_text(errno)));
    }
  }
}

bool FrameSocket::take_frame(std::string& frame) {
  std::uint32_t length = 0;
  if (in_.size() < sizeof(length)) return false;
  std::memcpy(&length, in_.data(), sizeof(length));
  if (static_cast<std::int64_t>(length) > max_frame_bytes_) {
    throw NetError(NetFailure::kProtocol, concat("a message of ", length, " bytes where at most ",
                                                 max_frame_bytes_, " are allowed"));
  }
  if (in_.size() < sizeof(length) + length) return false;
  frame = in_.substr(sizeof(length), length);
  in_.erase(0, sizeof(length) + length);
  return true;
}

std::vector<std::string> FrameSocket::receive() {
  std::vector<std::string> frames = std::exchange(ready_, {});
  std::array<char, 1 << 16> chunk;
  while (!at_end_) {
    const ssize_t count = ::recv(fd_.get(), chunk.data(), chunk.size(), 0);
    if (count > 0) {
      in_.append(chunk.data(), static_cast<std::size_t>(count));
      for (std::string frame; take_frame(frame);) frames.push_back(std::move(frame));
    } else if (count < 0 && errno == EAGAIN) {
      break;
    } else if (count == 0 || errno != EINTR) {
      at_end_ = true;
    }
  }
  if (frames.empty() && at_end_) throw NetError(NetFailure::kClosed, "connection closed by peer");
  return frames;
}

void FrameSocket::wait_send(std::string_view frame, Deadline deadline) {
  send(frame);
  while (has_unsent()) {
    if (!wait_ready(fd(), POLLOUT, deadline)) {
      throw NetError(NetFailure::kTimeout, "peer does not read its data");
    }
    flush();
  }
}

std::string FrameSocket::wait_receive(Deadline deadline) {
  for (;;) {
    std::vector<std::string> frames = receive();
    if (!frames.empty()) {
      std::string first = std::move(frames.front());
      frames.erase(frames.begin());
      ready_ = std::move(frames);
      return first;
    }
    if (!wait_ready(fd(), POLLIN, deadline)) {
      throw NetError(NetFailure::kTimeout, "no answer from the peer");
    }
  }
}

}  // namespace satrap::net
