#include "tests/support/simt/nccl_mesh.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace simt {
namespace {

struct Header {
  Message::Kind kind;
  std::uint32_t what, type, reduction;
  std::uint64_t number, count, bytes;
};

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

/// An abstract name: its first byte is 0.
socklen_t set_address(sockaddr_un& address, const std::string& name) {
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(),
              std::min(name.size(), sizeof(address.sun_path) - 1));
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

int make_socket() {
  const int made = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) fail("socket");
  return made;
}

struct Socket {
  int number;
  ~Socket() {
    if (number >= 0) ::close(number);
  }
  int release() { return std::exchange(number, -1); }
};

}  // namespace

Mesh::Mesh(std::string name, Hello self)
    : name_(std::move(name)), self_(self), hellos_(self.num_ranks), peers_(self.num_ranks) {
  hellos_[self.rank] = self;
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) fail("eventfd");
}

Mesh::~Mesh() {
  close();
  ::close(wake_);
}

void Mesh::close() {
  for (Peer& peer : peers_) {
    if (peer.socket >= 0) ::close(std::exchange(peer.socket, -1));
  }
}

// ------------------------------------------------------------------------------------ connecting

/// Whether there is one of the events, or time is over; false after a stop.
bool Mesh::wait(int socket, short events, int timeout_ms) {
  pollfd waited[2] = {{wake_, POLLIN, 0}, {socket, events, 0}};
  ::poll(waited, socket < 0 ? 1 : 2, timeout_ms);
  const std::lock_guard lock(mutex_);
  return !stopped_;
}

void Mesh::send_hello(int socket) const {
  if (::send(socket, &self_, sizeof(self_), MSG_NOSIGNAL) != sizeof(self_)) fail("send");
}

bool Mesh::read_hello(int socket, Hello& hello) {
  std::size_t num_read = 0;
  while (num_read < sizeof(hello)) {
    const ssize_t count =
        ::recv(socket, reinterpret_cast<char*>(&hello) + num_read, sizeof(hello) - num_read, 0);
    if (count > 0) num_read += static_cast<std::size_t>(count);
    if (count == 0) throw std::runtime_error("a rank is gone");
    if (count < 0 && errno != EAGAIN && errno != EINTR) fail("recv");
    if (count < 0 && !wait(socket, POLLIN, -1)) return false;
  }
  if (hello.num_ranks != self_.num_ranks) {
    throw std::runtime_error(
        "rank " + std::to_string(self_.rank) + " is one of " + std::to_string(self_.num_ranks) +
        ", and rank " + std::to_string(hello.rank) + " one of " + std::to_string(hello.num_ranks));
  }
  return true;
}

/// Tries until it listens.
bool Mesh::connect_to(std::size_t rank) {
  sockaddr_un address;
  const socklen_t size = set_address(address, name_ + "-" + std::to_string(rank));
  for (;;) {
    Socket socket{make_socket()};
    if (::connect(socket.number, reinterpret_cast<const sockaddr*>(&address), size) == 0) {
      send_hello(socket.number);
      peers_[rank].socket = socket.release();
      return true;
    }
    if (errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR) fail("connect");
    if (!wait(-1, 0, 2)) return false;
  }
}

void Mesh::accept(int listener, std::size_t count, bool& is_stopped) {
  while (count > 0) {
    Socket socket{::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (socket.number < 0 && errno != EAGAIN && errno != EINTR) fail("accept");
    is_stopped = socket.number < 0 && !wait(listener, POLLIN, -1);
    if (is_stopped) return;
    if (socket.number < 0) continue;
    Hello hello;
    is_stopped = !read_hello(socket.number, hello);
    if (is_stopped) return;
    send_hello(socket.number);
    hellos_[hello.rank] = hello;
    peers_[hello.rank].socket = socket.release();
    --count;
  }
}

bool Mesh::connect() {
  const Socket listener{make_socket()};
  sockaddr_un address;
  const socklen_t size = set_address(address, name_ + "-" + std::to_string(self_.rank));
  if (::bind(listener.number, reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    fail("rank " + std::to_string(self_.rank) + " joins twice");
  }
  if (::listen(listener.number, static_cast<int>(peers_.size())) != 0) fail("listen");
  for (std::size_t rank = 0; rank < self_.rank; ++rank) {
    if (!connect_to(rank)) return false;
  }
  bool is_stopped = false;
  accept(listener.number, peers_.size() - 1 - self_.rank, is_stopped);
  if (is_stopped) return false;
  for (std::size_t rank = 0; rank < self_.rank; ++rank) {
    if (!read_hello(peers_[rank].socket, hellos_[rank])) return false;
  }
  return true;
}

// ---------------------------------------------------------------------------------------- serving

void Mesh::send(int rank, Message message) {
  const Header header{message.kind,   message.what,  message.type,        message.reduction,
                      message.number, message.count, message.bytes.size()};
  std::vector<std::byte> head(sizeof(header));
  std::memcpy(head.data(), &header, sizeof(header));
  {
    const std::lock_guard lock(mutex_);
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    peer.out.push_back(std::move(head));
    if (!message.bytes.empty()) peer.out.push_back(std::move(message.bytes));
  }
  wake();
}

void Mesh::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof(one));
}

void Mesh::stop(bool flush) {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    flushes_ = flush;
  }
  wake();
}

/// False if the peer is gone.
bool Mesh::write_some(Peer& peer) {
  const std::lock_guard lock(mutex_);
  while (!peer.out.empty()) {
    const std::vector<std::byte>& first = peer.out.front();
    const ssize_t count =
        ::send(peer.socket, first.data() + peer.written, first.size() - peer.written, MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    peer.written += static_cast<std::size_t>(count);
    if (peer.written < first.size()) continue;
    peer.out.pop_front();
    peer.written = 0;
  }
  return true;
}

/// False if the peer is gone.
bool Mesh::read_some(Peer& peer, const std::function<void(Message)>& receive) {
  bool is_there = true;
  for (;;) {
    constexpr std::size_t kPiece = std::size_t{1} << 18;
    const std::size_t before = peer.in.size();
    peer.in.resize(before + kPiece);
    const ssize_t count = ::recv(peer.socket, peer.in.data() + before, kPiece, 0);
    peer.in.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count > 0) continue;
    is_there = count < 0 && (errno == EAGAIN || errno == EINTR);
    break;
  }
  std::size_t begin = 0;
  Header header;
  while (peer.in.size() - begin >= sizeof(header)) {
    std::memcpy(&header, peer.in.data() + begin, sizeof(header));
    if (peer.in.size() - begin - sizeof(header) < header.bytes) break;
    const auto bytes = peer.in.begin() + static_cast<std::ptrdiff_t>(begin + sizeof(header));
    if (header.kind == Message::Kind::kBye) peer.has_said_bye = true;
    receive({header.kind,
             header.what,
             header.type,
             header.reduction,
             header.number,
             header.count,
             {bytes, bytes + static_cast<std::ptrdiff_t>(header.bytes)}});
    begin += sizeof(header) + header.bytes;
  }
  peer.in.erase(peer.in.begin(), peer.in.begin() + static_cast<std::ptrdiff_t>(begin));
  return is_there;
}

/// Whether it has been stopped, and all that is to be written has been.
bool Mesh::is_to_end() {
  const std::lock_guard lock(mutex_);
  return stopped_ && (!flushes_ || std::ranges::all_of(peers_, [](const Peer& peer) {
           return peer.socket < 0 || peer.out.empty();
         }));
}

void Mesh::serve(const std::function<void(int rank, Message)>& receive,
                 const std::function<void(int rank)>& lost,
                 const std::function<bool()>& idle) {
  bool is_needed = false;
  while (!is_to_end()) {
    std::vector<pollfd> waited{{wake_, POLLIN, 0}};
    for (const Peer& peer : peers_) {
      const std::lock_guard lock(mutex_);
      const int events = peer.out.empty() ? POLLIN : POLLIN | POLLOUT;
      waited.push_back({peer.socket, static_cast<short>(events), 0});  // -1 is ignored
    }
    ::poll(waited.data(), waited.size(), is_needed ? 20 : -1);
    std::uint64_t num_wakes = 0;
    [[maybe_unused]] const ssize_t count = ::read(wake_, &num_wakes, sizeof(num_wakes));
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
      Peer& peer = peers_[rank];
      if (peer.socket < 0) continue;
      const int number = static_cast<int>(rank);
      const bool is_there =
          read_some(peer, [&](Message message) { receive(number, std::move(message)); }) &&
          write_some(peer);
      if (is_there) continue;
      ::close(std::exchange(peer.socket, -1));
      if (!peer.has_said_bye) lost(number);
    }
    is_needed = idle();
  }
}

}  // namespace simt
