#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace satrap::net {

struct EndpointOptions {
  /// This process listens there and connects from there: the name of a network interface, an
  /// address or a host name. The default cannot be reached from outside.
  std::string interface = "127.0.0.1";

  /// Secret of the job. Every connection begins with a proof of both ends that they know it; the
  /// token itself is not sent. What follows is neither encrypted nor authenticated: the network
  /// between the processes of a job must be private. May be empty at 127.0.0.1 only.
  std::string token;

  /// Gloo's event threads; connections are spread over them. One moves about 3 GB/s.
  std::int64_t num_devices = 1;

  /// A heartbeat is sent this often on every connection ...
  std::int64_t heartbeat_interval_ms = 1000;
  /// ... and a peer that sends nothing for this long counts as hung: its connection is closed.
  std::int64_t heartbeat_timeout_ms = 10'000;

  /// XXH3 over every request and reply, checked by the receiver. TCP's own checksum is weak; the
  /// cost is about 0.05 ns a byte on each side.
  bool checksum = false;
};

/// This process in the network: Gloo's devices, the thread that watches all connections for peers
/// that died or hang, and memory that is reused from message to message. Servers, connections and
/// collectives are made from one and keep it alive.
///
/// Creating one makes the process ignore SIGPIPE, unless the program has set another action: Gloo
/// writes to sockets whose peer may be gone.
class Endpoint {
 public:
  /// Throws Error(kInvalidConfig) for an interface that does not exist, or that other machines can
  /// reach without a token, Error(kUnavailable) if this program is linked with another Gloo than
  /// libgloo.so.
  explicit Endpoint(EndpointOptions options);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  const EndpointOptions& options() const;
  const std::string& address() const;  // numeric, of the interface

  class Impl;  // of this module
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

/// The path of the library that this program's calls of Gloo reach; or, if no Endpoint can be made,
/// what is wrong with it, in words.
std::string describe_gloo();

}  // namespace satrap::net
