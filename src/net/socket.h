#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "satrap/net/deadline.h"
#include "satrap/net/net_error.h"

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
  int release() { return std::exchange(fd_, -1); }  // to another owner

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

/// Whether both ends of a connection are this socket: who connects to a port of this machine at
/// which nobody listens may be given that port for his own end, and TCP connects him to himself.
bool is_connected_to_itself(const Fd& fd);

/// A connected, non-blocking socket without delay. Throws NetError: kTimeout, or kClosed if the
/// other side does not answer or refuses at once, also where nobody listens but the socket itself.
Fd connect_tcp(const std::string& host, std::int64_t port, Deadline deadline);

/// The next waiting connection, non-blocking, or nothing: nobody waits, or that one has gone.
/// `lack` gets the words for what the process or the system has none of (descriptors, memory), if
/// that is why: the connection then goes on waiting.
Fd accept_tcp(const Fd& listener, std::string* lack = nullptr);

/// The address of the other end, for messages.
std::string peer_name(const Fd& fd);

/// Waits until the descriptor is ready for `events` of poll(2) or the deadline; returns whether it
/// is ready. Throws NetError(kStopped).
bool wait_ready(int fd, short events, Deadline deadline);

/// Sleeps before another attempt. Throws NetError(kStopped) if the deadline has been stopped.
void pause_before_retry(std::chrono::milliseconds pause, Deadline deadline);

/// Messages over a socket: 4 bytes of length, then the bytes. Not thread-safe.
/// The socket is non-blocking; the functions named wait_ block until the deadline.
///
/// It reads no byte beyond the message that it returns: whatever the other end sends, it holds one
/// message of at most max_frame_bytes, and the rest waits in the kernel, where poll(2) shows it.
class FrameSocket {
 public:
  /// A message longer than max_frame_bytes is a NetError(kProtocol) before memory is allocated for
  /// it.
  FrameSocket(Fd fd, std::int64_t max_frame_bytes)
      : fd_(std::move(fd)), max_frame_bytes_(max_frame_bytes) {}

  int fd() const { return fd_.get(); }
  void set_max_frame_bytes(std::int64_t bytes) { max_frame_bytes_ = bytes; }
  std::string peer() const { return peer_name(fd_); }

  /// Queues a message and writes as much as the socket accepts. Throws NetError(kClosed).
  void send(std::string_view frame);
  /// Writes more of the queue. Throws NetError(kClosed).
  void flush();
  bool has_unsent() const { return num_sent_ < out_.size(); }
  std::int64_t unsent_bytes() const { return static_cast<std::int64_t>(out_.size() - num_sent_); }

  /// The next message, if all of it has arrived. Throws NetError: kClosed at the end of the stream,
  /// kProtocol.
  std::optional<std::string> receive();

  void wait_send(std::string_view frame, Deadline deadline);
  std::string wait_receive(Deadline deadline);

  /// The socket itself, for another protocol. Requires that nothing is unsent or half received.
  Fd release();

 private:
  bool read_up_to(std::size_t size);

  Fd fd_;
  std::int64_t max_frame_bytes_;
  std::string in_;  // of the message that is arriving: its length and what follows
  std::string out_;
  std::size_t num_sent_ = 0;  // of out_
};

}  // namespace satrap::net
