#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "satrap/core/mutex.h"
#include "satrap/net/deadline.h"
#include "satrap/net/net_error.h"
#include "src/net/gloo_mesh.h"
#include "src/net/socket.h"

namespace satrap::net {

/// Ends every wait on a link once the link is broken. It is a separate object because Gloo's
/// event thread and the monitor hold it without owning the link.
class Breaker {
 public:
  /// Called once, on the thread that broke the link. Must not block.
  explicit Breaker(std::function<void()> on_trip = {}) : on_trip_(std::move(on_trip)) {}

  /// Breaks the link; the first reason stays. Wakes all waits on registered buffers.
  void trip(NetFailure failure, const std::string& reason);

  bool is_tripped() const { return is_tripped_; }
  const std::atomic<bool>& tripped() const { return is_tripped_; }  // for Deadline::unless

  /// The reason as an exception. Requires is_tripped().
  NetError error() const;

  /// Throws error() if it is tripped.
  void check() const;

  void add(GlooBuffer* buffer);
  void remove(GlooBuffer* buffer);

 private:
  const std::function<void()> on_trip_;
  std::atomic<bool> is_tripped_{false};
  mutable Mutex mutex_;
  NetFailure failure_ SATRAP_GUARDED_BY(mutex_) = NetFailure::kClosed;
  std::string reason_ SATRAP_GUARDED_BY(mutex_);
  std::vector<GlooBuffer*> buffers_ SATRAP_GUARDED_BY(mutex_);
};

/// Connections to some peers that end together. When one ends, all waits end at once, with the
/// reason. A link never recovers; it is replaced.
class Link {
 public:
  /// `on_trip` as for Breaker. Throws NetError(kClosed) without resources.
  Link(std::shared_ptr<GlooDevice> device, int rank, int size, std::function<void()> on_trip = {});

  GlooMesh& mesh() { return mesh_; }
  const GlooMesh& mesh() const { return mesh_; }

  /// Makes `socket` the connection to `peer`, whose other end has proved to be that peer. Throws
  /// the NetError that broke the link.
  void adopt(int peer, Fd socket);

  const std::shared_ptr<Breaker>& breaker() const { return breaker_; }

  /// Ends all waits with this reason, then closes the connections: from then on no memory of any
  /// buffer is touched. Blocks up to 10 ms per peer. Not for the event thread.
  void close(NetFailure failure, const std::string& reason) noexcept;

 private:
  const std::shared_ptr<Breaker> breaker_;
  GlooMesh mesh_;
};

/// Memory that takes part in one send and one receive at a time. The memory belongs to the caller
/// and outlives this object. Destroying it while Gloo may still use the memory closes the link
/// first, so that Gloo never has a posted receive without a buffer, which it cannot handle. Waits
/// throw NetError: kTimeout at the deadline, which breaks the link, or the error that broke the
/// link. (If another wait's deadline ends a wait: kTimeout or kClosed.)
class LinkBuffer {
 public:
  LinkBuffer(std::shared_ptr<Link> link, void* memory, std::int64_t bytes);
  ~LinkBuffer();
  LinkBuffer(const LinkBuffer&) = delete;
  LinkBuffer& operator=(const LinkBuffer&) = delete;

  /// Posts a receive of at most `bytes` of the memory at `offset` from the messages of `slot`,
  /// which arrive in the order in which they were sent. Never waits for the peer.
  void post_receive(int peer, std::uint64_t slot, std::int64_t offset, std::int64_t bytes);
  /// Starts to send. Never waits for the peer. The peer's receive must have room for `bytes`.
  void post_send(int peer, std::uint64_t slot, std::int64_t offset, std::int64_t bytes);

  void wait_receive(Deadline deadline);
  void wait_send(Deadline deadline);

  bool is_receiving() const { return is_receiving_; }
  bool is_sending() const { return is_sending_; }

 private:
  template <class Wait>
  void finish(bool& is_under_way, Deadline deadline, Wait&& wait);
  [[noreturn]] void fail(Deadline deadline) const;

  const std::shared_ptr<Link> link_;
  const std::unique_ptr<GlooBuffer> buffer_;
  bool is_receiving_ = false;
  bool is_sending_ = false;
};

}  // namespace satrap::net
