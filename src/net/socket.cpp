#include "src/net/socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

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
  constexpr int kBacklog = 1024;  // strangers may fill it faster than they are refused
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

bool is_connected_to_itself(const Fd& fd) {
  sockaddr_storage ours{}, theirs{};
  socklen_t our_length = sizeof(ours), their_length = sizeof(theirs);
  return getsockname(fd.get(), reinterpret_cast<sockaddr*>(&ours), &our_length) == 0 &&
         getpeername(fd.get(), reinterpret_cast<sockaddr*>(&theirs), &their_length) == 0 &&
         our_length == their_length && std::memcmp(&ours, &theirs, our_length) == 0;
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
    if (error == 0 && is_connected_to_itself(fd)) error = ECONNREFUSED;
    if (error == 0) {
      set_no_delay(fd.get());
      return fd;
    }
    reason = error_text(error);
  }
  throw NetError(NetFailure::kClosed,
                 concat("cannot connect to ", host, " port ", port, ": ", reason));
}

Fd accept_tcp(const Fd& listener, std::string* lack) {
  Fd fd(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd) {
    set_no_delay(fd.get());
  } else if (lack != nullptr &&
             (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
    *lack = error_text(errno);
  }
  return fd;
}

std::string peer_name(const Fd& fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (getpeername(fd.get(), address, &length) != 0) return "somebody who has left";
  return numeric_address(address, length);
}

bool wait_ready(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd entry{fd, events, 0};
    const Deadline slice = deadline.at_most_ms(Deadline::kStopMs);
    const int ready = poll(&entry, 1, static_cast<int>(slice.remaining_ms()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) {
      throw NetError(NetFailure::kClosed, concat("poll: ", error_text(errno)));
    }
    if (deadline.is_stopped()) throw NetError(NetFailure::kStopped, "stopped while waiting");
    if (deadline.has_passed()) return false;
  }
}

void pause_before_retry(std::chrono::milliseconds pause, Deadline deadline) {
  if (deadline.is_stopped()) throw NetError(NetFailure::kStopped, "stopped while waiting");
  std::this_thread::sleep_for(std::min(
      pause, std::chrono::milliseconds(deadline.at_most_ms(Deadline::kStopMs).remaining_ms())));
}

void FrameSocket::send(std::string_view frame) {
  const auto length = static_cast<std::uint32_t>(frame.size());
  out_.append(reinterpret_cast<const char*>(&length), sizeof(length));
  out_.append(frame);
  flush();
}

void FrameSocket::flush() {
  while (has_unsent()) {
    const ssize_t written =
        ::send(fd_.get(), out_.data() + num_sent_, out_.size() - num_sent_, MSG_NOSIGNAL);
    if (written >= 0) {
      num_sent_ += static_cast<std::size_t>(written);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      throw NetError(NetFailure::kClosed, concat("connection lost: ", error_text(errno)));
    }
  }
  // Moves the rest only once there is less of it than was sent.
  if (num_sent_ < out_.size() - num_sent_) return;
  out_.erase(0, std::exchange(num_sent_, 0));
}

// Whether in_ has that size.
bool FrameSocket::read_up_to(std::size_t size) {
  std::array<char, 1 << 14> chunk;
  while (in_.size() < size) {
    const ssize_t count =
        ::recv(fd_.get(), chunk.data(), std::min(chunk.size(), size - in_.size()), 0);
    if (count > 0) {
      in_.append(chunk.data(), static_cast<std::size_t>(count));
    } else if (count < 0 && errno == EAGAIN) {
      return false;
    } else if (count == 0 || errno != EINTR) {
      throw NetError(NetFailure::kClosed, "connection closed by peer");
    }
  }
  return true;
}

std::optional<std::string> FrameSocket::receive() {
  std::uint32_t length = 0;
  if (!read_up_to(sizeof(length))) return std::nullopt;
  std::memcpy(&length, in_.data(), sizeof(length));
  if (static_cast<std::int64_t>(length) > max_frame_bytes_) {
    throw NetError(NetFailure::kProtocol, concat("a message of ", length, " bytes where at most ",
                                                 max_frame_bytes_, " are allowed"));
  }
  if (!read_up_to(sizeof(length) + length)) return std::nullopt;
  std::string frame = in_.substr(sizeof(length));
  in_.clear();
  return frame;
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
    if (std::optional<std::string> frame = receive()) return std::move(*frame);
    if (!wait_ready(fd(), POLLIN, deadline)) {
      throw NetError(NetFailure::kTimeout, "no answer from the peer");
    }
  }
}

Fd FrameSocket::release() {
  SATRAP_CHECK(in_.empty() && !has_unsent(), "a socket is handed on in the middle of a message");
  return std::move(fd_);
}

}  // namespace satrap::net
