#include "src/net/monitor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <poll.h>

#include "satrap/core/log.h"
#include "satrap/core/thread_group.h"

namespace satrap::net {

namespace {
constexpr char kHeartbeat = 'h';
constexpr char kGoodbye = 'g';  // followed by the reason
}  // namespace

struct Monitor::Entry {
  FrameSocket socket;
  OnDown on_down;
  Deadline::Clock::time_point last_heard, last_said;
  bool is_down = false;
};

Monitor::Monitor(std::int64_t heartbeat_interval_ms, std::int64_t heartbeat_timeout_ms)
    : interval_(heartbeat_interval_ms), timeout_(heartbeat_timeout_ms) {
  thread_ = start_thread("net-monitor", [this] { run(); });
}

Monitor::~Monitor() {
  stop_ = true;
  wake_.notify();
  thread_.join();
}

std::unique_ptr<Monitor::Watch> Monitor::watch(FrameSocket socket, OnDown on_down) {
  const auto now = Deadline::Clock::now();
  auto entry = std::make_shared<Entry>(Entry{std::move(socket), std::move(on_down), now, {}});
  {
    const MutexLock lock(mutex_);
    entries_.push_back(entry);
  }
  wake_.notify();
  return std::make_unique<Watch>(*this, std::move(entry));
}

void Monitor::run() {
  auto last_round = Deadline::Clock::now();
  while (!stop_) {
    std::vector<pollfd> fds{{wake_.fd(), POLLIN, 0}};
    std::vector<std::shared_ptr<Entry>> entries;
    {
      const MutexLock lock(mutex_);
      for (const std::shared_ptr<Entry>& entry : entries_) {
        if (entry->is_down) continue;
        const short write = entry->socket.has_unsent() ? POLLOUT : 0;
        fds.push_back({entry->socket.fd(), static_cast<short>(POLLIN | write), 0});
        entries.push_back(entry);
      }
    }
    const auto tick = std::max<std::int64_t>(1, interval_.count() / 2);
    poll(fds.data(), fds.size(), entries.empty() ? -1 : static_cast<int>(tick));
    wake_.clear();
    if (stop_) return;

    const MutexLock lock(mutex_);
    const auto now = Deadline::Clock::now();
    // If this process was stopped or starved, it has not listened: its peers get another chance.
    const bool was_away =
        now - last_round > std::max(2 * interval_, timeout_ / 2) && !entries.empty();
    last_round = now;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (was_away) entries[i]->last_heard = now;
      serve(*entries[i], fds[i + 1].revents);
    }
  }
}

void Monitor::serve(Entry& entry, short events) {
  if (!entry.on_down) return;  // the watch ended meanwhile
  const auto now = Deadline::Clock::now();
  try {
    if ((events & POLLOUT) != 0) entry.socket.flush();
    if ((events & ~POLLOUT) != 0) {
      // One message in a turn; more of them keep the socket readable.
      if (const std::optional<std::string> frame = entry.socket.receive()) {
        entry.last_heard = now;
        if (frame->starts_with(kGoodbye)) {
          throw NetError(NetFailure::kClosed, concat("peer hung up: ", frame->substr(1)));
        }
      }
    }
    if (now - entry.last_heard > timeout_) {
      throw NetError(NetFailure::kTimeout,
                     concat("nothing heard from the peer for ", timeout_.count(), " ms"));
    }
    if (now - entry.last_said >= interval_ && !entry.socket.has_unsent()) {
      entry.socket.send(std::string_view(&kHeartbeat, 1));
      entry.last_said = now;
    }
  } catch (const NetError& error) {
    entry.is_down = true;
    std::exchange(entry.on_down, {})(error.failure(), error.what());
  }
}

Monitor::Watch::~Watch() {
  const MutexLock lock(monitor_.mutex_);
  entry_->on_down = {};
  monitor_.entries_.remove(entry_);
}

void Monitor::Watch::say_goodbye(const std::string& reason) {
  const MutexLock lock(monitor_.mutex_);
  try {
    if (!entry_->is_down) entry_->socket.send(kGoodbye + reason);
  } catch (const NetError& error) {
    // The peer will learn it from the end of the stream.
    log_debug("no goodbye: {}", error.what());
  }
}

}  // namespace satrap::net
