#include "src/net/gloo_mesh.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/pair.h>
#include <gloo/transport/tcp/unbound_buffer.h>
#include <pthread.h>
#include <time.h>

#include "satrap/core/error.h"
#include "satrap/core/thread_name.h"
#include "satrap/net/net_error.h"

namespace satrap::net {
namespace {

namespace tcp = gloo::transport::tcp;

void name_event_thread() {
  static thread_local const bool kNamed = [] {
    set_thread_name("net-gloo");
    return true;
  }();
  static_cast<void>(kNamed);
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown error";
  }
}

// Gloo of 2022 connects within connect(). Since 2023 the device connects, and calls the pair on the
// event thread when that is done: possibly long after connect() has given up and the pair has been
// destroyed.
template <class Device>
concept ConnectsByCallback = requires(const Device& device, const tcp::Address& address) {
  device.isInitiator(address, address);
};

// Pairs that the event thread may still call.
struct AbandonedPairs {
  std::mutex mutex;
  std::vector<std::unique_ptr<gloo::transport::Pair>> pairs;
};

// A base class, so that the pairs are destroyed after the device and its event thread.
class SafeDevice final : private AbandonedPairs, public tcp::Device {
 public:
  using tcp::Device::Device;

  void keep(std::unique_ptr<gloo::transport::Pair> pair) {
    const std::lock_guard lock(mutex);
    pairs.push_back(std::move(pair));
  }
};

// State that the event thread may still need while another thread destroys the pair.
struct PairEvents {
  GlooMesh::OnDown on_down;
  int peer;
  std::atomic<bool> is_closed{false};
  std::atomic<bool> was_told{false};
  std::string reason{};  // written before is_closed
  // Counts the event thread's uses of the pair. Gloo lets them finish before close() returns, in a
  // way that ThreadSanitizer does not see; the destructor reads this.
  std::atomic<std::uint64_t> num_handled{0};
};

class SafePair final : public tcp::Pair {
 public:
  SafePair(tcp::Context* context,
           tcp::Device* device,
           int peer,
           std::chrono::milliseconds timeout,
           std::shared_ptr<PairEvents> events)
      : tcp::Pair(context, device, peer, timeout), events_(std::move(events)) {
    is_made_.store(true, std::memory_order_release);
  }

  // Closes while this is still a SafePair: Gloo's destructor closes too, but then with its own
  // handleEvents.
  ~SafePair() override {
    close();
    static_cast<void>(events_->num_handled.load(std::memory_order_acquire));
  }

  bool is_connected() {
    const std::lock_guard lock(m_);
    return state_ == CONNECTED;
  }

  void connect(const std::vector<char>& bytes) override {
    {
      const std::lock_guard lock(m_);
      awaits_callback_ = ConnectsByCallback<tcp::Device>;
    }
    tcp::Pair::connect(bytes);
  }

  // Whether the event thread may still call back for connect().
  bool awaits_callback() {
    const std::lock_guard lock(m_);
    return awaits_callback_;
  }

  void handleEvents(int events) override {
    // Gloo's constructor already listens, so a stranger may connect before this constructor is
    // done. Epoll repeats the event.
    if (!is_made_.load(std::memory_order_acquire)) return;
    name_event_thread();
    const std::shared_ptr<PairEvents> shared = events_;  // the pair may be gone when Gloo returns
    try {
      if (wait_for_lock()) tcp::Pair::handleEvents(events);
    } catch (const std::exception& error) {
      // Thrown by Gloo's connecting; its lock is free again. A holder of the lock may be waiting
      // for this thread.
      const std::unique_lock lock(m_, std::try_to_lock);
      if (lock) fail(broken(error));
    }
    shared->num_handled.fetch_add(1, std::memory_order_release);
    if (shared->is_closed && !shared->was_told.exchange(true)) {
      shared->on_down(shared->peer, shared->reason);
    }
  }

  // Gloo holds m_ while it calls the three functions below. Exceptions from its checks of the
  // peer's messages are caught there, and not after it has released m_: another thread may then
  // hold m_ and close the pair, for which it waits for the event thread.

  void changeState(state next) noexcept override {
    tcp::Pair::changeState(next);
    if (next == CONNECTED) {
      awaits_callback_ = false;
      if (events_->is_closed) tcp::Pair::changeState(CLOSED);  // before it was connected
    }
    if (next != CLOSED || events_->is_closed) return;
    events_->reason = ex_ ? text_of(ex_) : "closed";
    if (!ex_) events_->was_told = true;  // close(): by us
    events_->is_closed = true;
  }

  bool read() override {
    if (state_ == CLOSED) return false;  // perhaps just now by write(): the descriptor is gone
    try {
      if (tcp::Pair::read()) return true;
    } catch (const std::exception& error) {
      fail(broken(error));
    }
    if (state_ == CONNECTED && rx_.nread >= sizeof(rx_.preamble)) {
      const bool is_bound = rx_.getOpcode() == tcp::Op::SEND_BUFFER && rx_.buf == nullptr;
      if (is_bound || is_gone(rx_)) fail("data for a buffer that is not there");
    }
    return false;
  }

  bool write(tcp::Op& op) override {
    if (state_ == CLOSED) return false;
    try {
      if (tcp::Pair::write(op)) return true;
    } catch (const std::exception& error) {
      fail(broken(error));
    }
    if (state_ == CONNECTED && is_gone(op)) {
      fail("a buffer was destroyed while it was sent");
    }
    return false;
  }

 private:
  // Gloo skips an event while another thread holds m_, and epoll repeats it at once: the event
  // thread spins while the other one sends, and takes its CPU if there are few. So it waits, but
  // not for long: the holder of m_ may be waiting for this thread, to close the pair.
  // (On the system's clock: ThreadSanitizer does not know pthread_mutex_clocklock.)
  bool wait_for_lock() {
    constexpr std::int64_t kMaxNs = 1'000'000;
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += kMaxNs;
    if (until.tv_nsec >= 1'000'000'000) {
      until.tv_nsec -= 1'000'000'000;
      ++until.tv_sec;
    }
    if (pthread_mutex_timedlock(m_.native_handle(), &until) != 0) return false;
    pthread_mutex_unlock(m_.native_handle());
    return true;
  }

  // Gloo's signalException must not be called twice. Holds m_.
  void fail(const std::string& reason) {
    if (!ex_ && state_ != CLOSED) signalException(reason);
  }
  static std::string broken(const std::exception& error) {
    return std::string("the peer broke Gloo's protocol: ") + error.what();
  }
  static bool is_gone(const tcp::Op& op) {
    return op.ubuf && !gloo::NonOwningPtr<tcp::UnboundBuffer>(op.ubuf);
  }

  const std::shared_ptr<PairEvents> events_;
  std::atomic<bool> is_made_{false};
  bool awaits_callback_ = false;  // under m_
};

class SafeContext final : public tcp::Context {
 public:
  SafeContext(std::shared_ptr<tcp::Device> device, int me, int count, GlooMesh::OnDown on_down)
      : tcp::Context(std::move(device), me, count), on_down_(std::move(on_down)) {}

  ~SafeContext() override {
    for (auto& pair : pairs_) {
      if (pair == nullptr || !static_cast<SafePair&>(*pair).awaits_callback()) continue;
      static_cast<SafePair&>(*pair).close();
      static_cast<SafeDevice&>(*device_).keep(std::move(pair));
    }
  }

  std::unique_ptr<gloo::transport::Pair>& createPair(int peer) override {
    auto events = std::make_shared<PairEvents>(on_down_, peer);
    auto& pair = pairs_[static_cast<std::size_t>(peer)];
    pair = std::make_unique<SafePair>(this, device_.get(), peer, getTimeout(), std::move(events));
    return pair;
  }

  SafePair& pair(int peer) {
    return static_cast<SafePair&>(*pairs_[static_cast<std::size_t>(peer)]);
  }

 private:
  const GlooMesh::OnDown on_down_;
};

SafeContext& safe(tcp::Context& context) { return static_cast<SafeContext&>(context); }

}  // namespace

bool is_gloo_timeout(std::string_view text) {
  return text.find("imeout") != std::string_view::npos ||   // of the application, of connecting
         text.find("Timed out") != std::string_view::npos;  // of this wait
}

std::shared_ptr<GlooDevice> make_gloo_device(const std::string& address) {
  try {
    return std::make_shared<SafeDevice>(tcp::CreateDeviceAttr(tcp::attr(address.c_str())));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::system_error&) {  // no thread available: not the address's fault
    throw;
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kUnavailable,
                concat("Gloo cannot use address ", address, ": ", error.what()));
  }
}

GlooMesh::GlooMesh(std::shared_ptr<GlooDevice> device,
                   int rank,
                   int size,
                   Deadline deadline,
                   OnDown on_down)
    : rank_(rank), size_(size) {
  try {
    context_ = std::make_shared<SafeContext>(std::move(device), rank, size, std::move(on_down));
    // A pair waits five times its timeout for its peer.
    constexpr std::int64_t kGlooFactor = 5;
    context_->setTimeout(std::chrono::milliseconds(
        std::max<std::int64_t>(1, deadline.remaining_ms() / kGlooFactor)));
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank) context_->createPair(peer);
    }
  } catch (const std::exception& error) {
    throw NetError(NetFailure::kClosed, concat("Gloo cannot listen: ", error.what()));
  }
}

GlooMesh::~GlooMesh() { close(); }

std::string GlooMesh::address_for(int peer) const {
  const std::vector<char> bytes = context_->getPair(peer)->address().bytes();
  return {bytes.begin(), bytes.end()};
}

void GlooMesh::connect(int peer, const std::string& address) {
  try {
    context_->getPair(peer)->connect(std::vector<char>(address.begin(), address.end()));
  } catch (const std::exception& error) {
    throw NetError(is_gloo_timeout(error.what()) ? NetFailure::kTimeout : NetFailure::kClosed,
                   concat("Gloo connection not made: ", error.what()));
  }
  if (!safe(*context_).pair(peer).is_connected()) {
    throw NetError(NetFailure::kClosed, "Gloo connection closed while it was made");
  }
}

std::unique_ptr<GlooBuffer> GlooMesh::make_buffer(void* memory, std::int64_t bytes) const {
  return context_->createUnboundBuffer(memory, static_cast<std::size_t>(bytes));
}

void GlooMesh::close() noexcept {
  for (int peer = 0; peer < size_ && context_; ++peer) {
    if (peer != rank_) safe(*context_).pair(peer).close();
  }
}

std::string gloo_path() {
  Dl_info info{};
  const auto* function = reinterpret_cast<const void*>(&tcp::CreateDevice);
  if (dladdr(function, &info) == 0 || info.dli_fname == nullptr) return "unknown";
  return info.dli_fname;
}

void check_gloo_is_ours() {
  const std::string path = gloo_path();
  if (path.find("libgloo") == std::string::npos) {
    throw Error(ErrorCode::kUnavailable,
                concat("Gloo resolves to ", path,
                       " instead of libgloo.so: another library that carries its own Gloo was "
                       "linked in front of it (see cmake/Dependencies.cmake)"));
  }
}

}  // namespace satrap::net
