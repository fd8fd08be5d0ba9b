#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "satrap/net/rendezvous.h"

namespace satrap::net {

/// Holds the values of TcpRendezvous, in the launcher or rank 0. One thread serves all clients,
/// each in turn with one message. A client first proves that it knows the job's token, and the
/// server proves it in return; before that, a connection is worth 4 KiB of memory for a few
/// seconds. A malformed or oversized message closes only its connection.
class TcpRendezvousServer {
 public:
  /// Listens on `host` (a name, an address, or the name of a network interface) and `port` (0: any
  /// free one). Throws NetError(kRefused) if it cannot, and Error(kInvalidConfig) for an empty
  /// token if other machines could reach it.
  TcpRendezvousServer(const std::string& host, std::int64_t port, std::string token);
  ~TcpRendezvousServer();  // closes all connections; joins
  TcpRendezvousServer(const TcpRendezvousServer&) = delete;
  TcpRendezvousServer& operator=(const TcpRendezvousServer&) = delete;

  std::int64_t port() const;

  /// "tcp://address:port", for open_rendezvous.
  const std::string& url() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// A store in another process. The next call reopens a broken connection; a call that was in
/// progress when it broke is repeated, except add, which throws NetError(kClosed).
class TcpRendezvous : public Rendezvous {
 public:
  /// Tries until the deadline to reach a server that may not have started yet. Throws
  /// NetError(kTimeout), or NetError(kRefused) as soon as a server refuses the token. What stops
  /// this search (Deadline::unless) also stops calls that wait for a server that is gone.
  TcpRendezvous(std::string host, std::int64_t port, std::string token, Deadline deadline);
  ~TcpRendezvous() override;

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> get(const std::string& key) override;
  std::string wait(const std::string& key, Deadline deadline) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;
  void erase(const std::string& key) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace satrap::net
