#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "satrap/core/mutex.h"
#include "satrap/net/deadline.h"
#include "satrap/net/net_error.h"
#include "src/net/poller.h"
#include "src/net/socket.h"

namespace satrap::net {

/// Watches the control sockets of all connections of a process from one thread, "net-monitor". Each
/// Gloo connection has a control socket from the handshake on, for messages that bulk data must not
/// delay: heartbeats, a closing message, and the end of the stream that the kernel sends when a
/// process dies.
class Monitor {
 public:
  /// Called at most once, on the monitor's thread: the peer is gone. Should not block.
  using OnDown = std::function<void(NetFailure failure, const std::string& reason)>;

  Monitor(std::int64_t heartbeat_interval_ms, std::int64_t heartbeat_timeout_ms);
  ~Monitor();  // joins
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// One watched socket. Destroying it ends the watch and closes the socket; once the
  /// destructor has returned, on_down is not running and will not run. (So on_down must not destroy
  /// it.)
  class Watch;
  std::unique_ptr<Watch> watch(FrameSocket socket, OnDown on_down);

 private:
  struct Entry;

  void run();
  void serve(Entry& entry, short events) SATRAP_REQUIRES(mutex_);

  const std::chrono::milliseconds interval_, timeout_;
  WakeUp wake_;
  std::atomic<bool> stop_{false};
  Mutex mutex_;  // guards the entries too; held while on_down runs
  std::list<std::shared_ptr<Entry>> entries_ SATRAP_GUARDED_BY(mutex_);
  std::thread thread_;
};

class Monitor::Watch {
 public:
  Watch(Monitor& monitor, std::shared_ptr<Entry> entry)
      : monitor_(monitor), entry_(std::move(entry)) {}
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// Tells the peer why this side is about to close, if the socket accepts it without waiting.
  void say_goodbye(const std::string& reason);

 private:
  Monitor& monitor_;
  const std::shared_ptr<Entry> entry_;
};

}  // namespace satrap::net
