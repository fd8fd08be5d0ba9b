#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include <poll.h>

#include "src/net/handshake.h"
#include "src/net/refusals.h"

namespace satrap::net {

struct DoorOptions {
  std::uint64_t magic = 0;  // of the protocol
  std::string token;
  std::string name;                // of the server, for the log
  std::int64_t timeout_ms = 5000;  // for a handshake
};

/// A listening socket and the strangers before it: connections that have not yet proved that they
/// know the job's token. It has no thread; a loop around poll(2) serves it, and no stranger can
/// keep it from anything else: each has one message of a few KiB, a few seconds, and one of
/// kMaxStrangers places, of which the newest take those of the oldest. Where descriptors run out,
/// it rests between attempts.
class Door {
 public:
  /// Takes one that has proved itself: accepts it, or throws NetError, which refuses it.
  using Enter = std::function<void(Visitor& visitor)>;

  Door(Fd listener, DoorOptions options);

  std::int64_t port() const { return local_port(listener_); }
  const std::string& token() const { return options_.token; }

  /// Adds its descriptors to those that the loop polls. Between this and serve() nothing else is
  /// called.
  void watch(std::vector<pollfd>& fds);
  /// When it wants to be served, whatever the poll shows.
  Deadline next() const;
  void serve(const std::vector<pollfd>& fds, const Enter& enter);

  std::int64_t num_refused() const { return refusals_.num_total(); }

 private:
  void serve(std::list<Visitor>::iterator visitor, bool is_ready, const Enter& enter);
  void accept();

  static constexpr std::size_t kMaxStrangers = 256;

  const DoorOptions options_;
  const Fd listener_;
  std::list<Visitor> strangers_;  // the oldest first
  std::size_t first_ = 0;         // of its descriptors: the listener's, then the strangers'
  Deadline rests_until_ = Deadline::after_ms(0);
  Refusals refusals_;
};

}  // namespace satrap::net
