#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "satrap/net/deadline.h"

namespace satrap::net {

/// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

/// The numeric address of `host`, which is a network interface of this machine ("eth0"; IPv4
/// first), a name, or an address. Throws Error(kInvalidConfig).
std::string resolve_address(const std::string& host);

/// A listening socket on a numeric address, non-blocking, closed on exec. Throws
/// NetError(kRefused).
Fd listen_tcp(const std::string& address, std::int64_t port);
std::int64_t local_port(const Fd& fd);

/// A connected, non-blocking socket without delay. Throws NetError: kTimeout, or kClosed if the
/// other side does not answer or refuses at once.
Fd connect_tcp(const std::string& host, std::int64_t port, Deadline deadline);

/// The next waiting connection, non-blocking, or nothing, also after an error of one client.
Fd accept_tcp(const Fd& listener);

/// Waits until the descriptor is ready for `events` of poll(2) or the deadline; returns whether it
/// is ready.
bool wait_ready(int fd, short events, Deadline deadline);

/// Messages over a socket: 4 bytes of length, then the bytes. Not thread-safe.
/// The socket is non-blocking; the functions named wait_ block until the deadline.
class FrameSocket {
 public:
  /// A message longer than max_frame_bytes is a NetError(kProtocol) before memory is allocated for
  /// it.
  FrameSocket(Fd fd, std::int64_t max_frame_bytes)
      : fd_(std::move(fd)), max_frame_bytes_(max_frame_bytes) {}

  int fd() const { return fd_.get(); }
  void set_max_frame_bytes(std::int64_t bytes) { max_frame_bytes_ = bytes; }

  /// Queues a message and writes as much as the socket accepts. Throws NetError(kClosed).
  void send(std::string_view frame);
  /// Writes more of the queue. Throws NetError(kClosed).
  void flush();
  bool has_unsent() const { return !out_.empty(); }
  std::int64_t unsent_bytes() const { return static_cast<std::int64_t>(out_.size()); }

  /// The complete messages that have arrived. Throws NetError: kClosed at the end of the stream
  /// (after the messages before it were returned), kProtocol.
  std::vector<std::string> receive();

  void wait_send(std::string_view frame, Deadline deadline);
  std::string wait_receive(Deadline deadline);

 private:
  bool take_frame(std::string& frame);

  Fd fd_;
  std::int64_t max_frame_bytes_;
  std::string in_, out_;
  std::vector<std::string> ready_;  // received by wait_receive beyond the one it returned
  bool at_end_ = false;
};

}  // namespace satrap::net
