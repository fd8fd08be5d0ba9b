#include "src/net/meeting.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/mutex.h"
#include "satrap/core/thread_group.h"
#include "src/net/bytes.h"
#include "src/net/door.h"
#include "src/net/handshake.h"
#include "src/net/poller.h"
#include "src/net/proof.h"

namespace satrap::net {
namespace {

constexpr std::uint64_t kMeetingMagic = 0x3230435041525453;  // changes with the format
constexpr std::int64_t kHandshakeMs = 10'000;

std::string store_key(const MeetingPlace& place, std::int64_t rank) {
  return concat(place.key, "/", rank);
}

// Where a rank listens, and a secret that only those who can read the store know.
struct Address {
  std::string host;
  std::int64_t port = 0;
  std::string secret;

  std::string bytes() const {
    return ByteWriter().put_text(host).put(port).put_text(secret).bytes();
  }
  static Address from(const std::string& bytes) {
    ByteReader reader(bytes);
    Address address;
    address.host = reader.get_text();
    address.port = reader.get<std::int64_t>();
    address.secret = reader.get_text();
    return address;
  }
};

// Receives the ranks above this one, on a thread of its own: this one may wait for others
// meanwhile.
class Reception {
 public:
  Reception(const Endpoint::Impl& endpoint, const MeetingPlace& place)
      : rank_(place.rank),
        size_(place.size),
        door_(listen_tcp(endpoint.address, 0),
              {.magic = kMeetingMagic,
               .token = endpoint.options.token,
               .name = concat("rank ", place.rank, ", meeting the others"),
               .timeout_ms = kHandshakeMs}),
        address_{endpoint.address, door_.port(), random_nonce()} {
    thread_ = start_thread("net-meet", [this] { run(); });
  }
  ~Reception() {
    stop_ = true;
    wake_.notify();
    thread_.join();
  }
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;

  const Address& address() const { return address_; }

  // Once all have come.
  std::map<int, Fd> wait(Deadline deadline) {
    const MutexLock lock(mutex_);
    while (!is_complete()) {
      if (deadline.is_stopped()) throw NetError(NetFailure::kStopped, "stopped while waiting");
      if (deadline.has_passed()) {
        throw NetError(NetFailure::kTimeout,
                       concat("rank ", missing(), " not reached: it has not come"));
      }
      changed_.wait_until(mutex_, deadline.at_most_ms(Deadline::kStopMs).at());
    }
    return std::move(arrived_);
  }

 private:
  void run() {
    while (!stop_) {
      std::vector<pollfd> fds{{wake_.fd(), POLLIN, 0}};
      door_.watch(fds);
      poll(fds.data(), fds.size(), static_cast<int>(door_.next().remaining_ms()));
      if (!stop_) door_.serve(fds, [this](Visitor& visitor) { enter(visitor); });
    }
  }

  void enter(Visitor& visitor) {
    ByteReader reader(visitor.request());
    const std::string secret = reader.get_text();
    const auto from = reader.get<std::int64_t>();
    if (!is_same_secret(secret, address_.secret) || from <= rank_ || from >= size_) {
      visitor.refuse(concat("rank ", rank_, " does not expect it"));
    }
    Fd socket = visitor.accept(door_.token(), "").release();
    const MutexLock lock(mutex_);
    // One that comes again has given up its last attempt.
    arrived_[static_cast<int>(from)] = std::move(socket);
    changed_.notify_all();
  }

  bool is_complete() const SATRAP_REQUIRES(mutex_) {
    return static_cast<std::int64_t>(arrived_.size()) == size_ - 1 - rank_;
  }
  std::int64_t missing() const SATRAP_REQUIRES(mutex_) {
    std::int64_t rank = rank_ + 1;
    while (arrived_.contains(static_cast<int>(rank))) ++rank;
    return rank;
  }

  const std::int64_t rank_, size_;
  Door door_;  // of the thread
  const Address address_;
  WakeUp wake_;
  std::atomic<bool> stop_{false};
  Mutex mutex_;
  CondVar changed_;
  std::map<int, Fd> arrived_ SATRAP_GUARDED_BY(mutex_);
  std::thread thread_;
};

Fd connect_once(const Endpoint::Impl& endpoint,
                const Address& address,
                std::int64_t rank,
                Deadline deadline) {
  FrameSocket socket(connect_tcp(address.host, address.port, deadline), kMaxHandshakeBytes);
  introduce(socket, kMeetingMagic, endpoint.options.token,
            ByteWriter().put_text(address.secret).put(rank).bytes(), deadline);
  return socket.release();
}

Fd connect_to(const Endpoint::Impl& endpoint,
              const MeetingPlace& place,
              std::int64_t peer,
              Deadline deadline) {
  constexpr auto kPause = std::chrono::milliseconds(20);
  try {
    const Address address = Address::from(place.store.wait(store_key(place, peer), deadline));
    for (;;) {
      try {
        return connect_once(endpoint, address, place.rank, deadline.at_most_ms(kHandshakeMs));
      } catch (const NetError& error) {
        if (!error.is_connection_lost() || deadline.has_passed()) throw;
        log_debug("rank {}: {}", peer, error.what());
      }
      pause_before_retry(kPause, deadline);
    }
  } catch (const NetError& error) {
    throw NetError(error.failure(), concat("rank ", peer, " not reached: ", error.what()));
  }
}

}  // namespace

std::map<int, Fd> meet_ranks(const Endpoint::Impl& endpoint,
                             const MeetingPlace& place,
                             Deadline deadline) {
  if (place.store.add(concat(place.key, "/joined/", place.rank), 1) != 1) {
    throw NetError(NetFailure::kRefused,
                   concat("rank ", place.rank, " has joined '", place.key, "' before"));
  }
  std::optional<Reception> reception;
  if (place.rank + 1 < place.size) {
    reception.emplace(endpoint, place);
    place.store.set(store_key(place, place.rank), reception->address().bytes());
  }
  std::map<int, Fd> below;
  for (std::int64_t peer = 0; peer < place.rank; ++peer) {
    below.emplace(static_cast<int>(peer), connect_to(endpoint, place, peer, deadline));
  }
  std::map<int, Fd> all = reception ? reception->wait(deadline) : std::map<int, Fd>();
  all.merge(below);
  return all;
}

}  // namespace satrap::net
