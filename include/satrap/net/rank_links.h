#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "satrap/net/deadline.h"
#include "satrap/net/endpoint.h"
#include "satrap/net/rendezvous.h"

namespace satrap::net {

class Link;

/// Where and how a rank meets the others.
struct MeetingPlace {
  Rendezvous& store;
  std::string key;  // in the store; used once
  std::int64_t rank = 0;
  std::int64_t size = 1;
};

/// The connections of this rank with every other one. They end together, and for all ranks: when a
/// rank dies or closes, every transfer in progress throws. They never recover; ranks meet again
/// under another key.
class RankLinks {
 public:
  /// Meets the other ranks and blocks until all have come. Both ends of every connection have then
  /// proved that they know the job's token and which ranks they are; strangers who come to the port
  /// are turned away. Throws NetError, with the rank that was not reached, at the deadline or when
  /// it is stopped, and kRefused if this rank has been there before.
  RankLinks(const Endpoint& endpoint, const MeetingPlace& place, Deadline deadline);
  ~RankLinks();
  RankLinks(const RankLinks&) = delete;
  RankLinks& operator=(const RankLinks&) = delete;

  /// Ends all transfers with NetError(kClosed), then closes the connections: from then on no memory
  /// of any transfer is touched. Blocks up to 10 ms per rank. From any thread.
  void close(const std::string& reason) noexcept;

  /// Closes them since a rank does not do what the others expect. Throws NetError(kProtocol), or
  /// the error that ended them before.
  [[noreturn]] void fail(const std::string& reason);

 private:
  friend class Transfers;

  const std::shared_ptr<Endpoint::Impl> endpoint_;
  const std::shared_ptr<Link> link_;
};

/// Sends and receives that belong together. The bytes are the caller's and outlive this object:
/// destroying it with a transfer in progress closes the links first. Messages of a slot arrive in
/// the order in which they were sent; a receive meets sends of its slot alone. One thread at a
/// time.
///
/// The functions throw NetError: kTimeout at a deadline, which also ends the links, or what ended
/// them.
class Transfers {
 public:
  Transfers(const RankLinks& links, std::uint64_t slot);
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  /// Starts to send. Never waits for the peer, whose receive must have room for the bytes. No bytes
  /// are no message, at both ends.
  void send(int peer, std::span<const std::byte> bytes);
  /// Expects a message of at most this size. Never waits for the peer, and does not learn the size
  /// of what arrives.
  void receive(int peer, std::span<std::byte> bytes);

  /// Blocks until the first message that is expected of `peer` is there.
  void wait_for_first(int peer, Deadline deadline);
  /// Blocks until every message has arrived and every send is done.
  void wait(Deadline deadline);

  /// Forgets all of them: their memory serves others. Requires wait().
  void clear();

 private:
  struct Transfer;

  const std::shared_ptr<Link> link_;
  const std::uint64_t slot_;
  std::vector<Transfer> sends_, receives_;
};

}  // namespace satrap::net
