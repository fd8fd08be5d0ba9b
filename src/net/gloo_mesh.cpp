#include "src/net/gloo_mesh.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/pair.h>
#include <gloo/transport/tcp/unbound_buffer.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/core/text.h"
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
    return gloo_reason(e.what());
  } catch (...) {
    return "unknown error";
  }
}

// Since 2023 a device listens, at one port for all of its pairs; in 2022 every pair does.
template <class Device>
concept Listens = requires(const Device& device, const tcp::Address& address) {
  device.isInitiator(address, address);
};

// Runs something once on the event thread.
class Errand final : public tcp::Handler {
 public:
  Errand(tcp::Device& device, std::function<void()> work)
      : device_(device), work_(std::move(work)), signal_(eventfd(1, EFD_CLOEXEC)) {}

  void run() {
    std::future<void> done = done_.get_future();
    device_.registerDescriptor(signal_.get(), EPOLLIN, this);
    done.get();
  }

 private:
  void handleEvents(int) override {
    name_event_thread();
    device_.unregisterDescriptor(signal_.get(), this);
    std::promise<void> done = std::move(done_);  // this object is gone once the promise is kept
    try {
      work_();
      done.set_value();
    } catch (...) {
      done.set_exception(std::current_exception());
    }
  }

  tcp::Device& device_;
  const std::function<void()> work_;
  const Fd signal_;
  std::promise<void> done_;
};

// The descriptor in this process that listens at `port` of 127.0.0.1; for devices that listen.
[[maybe_unused]] int listening_descriptor(in_port_t port) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = parse_number<int>(entry.path().filename().string()).value_or(-1);
    int listens = 0;
    socklen_t size = sizeof(listens);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) continue;
    sockaddr_in address{};
    size = sizeof(address);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) continue;
    if (address.sin_family == AF_INET && address.sin_port == port) return fd;
  }
  return -1;
}

class SafeDevice final : public tcp::Device {
 public:
  explicit SafeDevice(const gloo::transport::tcp::attr& attr) : tcp::Device(attr) {
    stop_listening(*this);
  }

 private:
  // Puts a descriptor at which nothing ever arrives in the place of the listening socket, which
  // Gloo does not let go of.
  template <class Self>
  static void stop_listening(Self& device) {
    if constexpr (Listens<Self>) {
      const sockaddr_storage address = device.nextAddress().getSockaddr();
      const int fd = listening_descriptor(reinterpret_cast<const sockaddr_in&>(address).sin_port);
      const Fd nothing(eventfd(0, EFD_CLOEXEC));
      if (fd < 0 || !nothing) throw std::runtime_error("its listening socket is not found");
      device.unregisterDescriptor(fd, nullptr);
      dup3(nothing.get(), fd, O_CLOEXEC);
      device.registerDescriptor(fd, 0, nullptr);  // for Gloo's destructor
    }
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
  // On the event thread, which can therefore not take a connection at the port at which Gloo's
  // constructor may listen: it is closed again at once.
  SafePair(tcp::Context* context,
           tcp::Device* device,
           int peer,
           std::chrono::milliseconds timeout,
           std::shared_ptr<PairEvents> events)
      : tcp::Pair(context, device, peer, timeout), events_(std::move(events)) {
    const std::lock_guard lock(m_);
    if (fd_ < 0) return;
    device_->unregisterDescriptor(fd_, this);
    ::close(std::exchange(fd_, -1));
    state_ = INITIALIZING;
  }

  // Closes while this is still a SafePair: Gloo's destructor closes too, but then with its own
  // handleEvents.
  ~SafePair() override {
    close();
    static_cast<void>(events_->num_handled.load(std::memory_order_acquire));
  }

  // Returns whether it now has this connection.
  bool adopt(Fd socket) {
    const std::lock_guard lock(m_);
    if (state_ != INITIALIZING) return false;
    fd_ = socket.release();
    device_->registerDescriptor(fd_, EPOLLIN, this);
    changeState(CONNECTED);
    return true;
  }

  void handleEvents(int events) override {
    name_event_thread();
    const std::shared_ptr<PairEvents> shared = events_;  // the pair may be gone when Gloo returns
    try {
      if (wait_for_lock()) tcp::Pair::handleEvents(events);
    } catch (const std::exception& error) {
      // Its lock is free again. A holder of the lock may be waiting for this thread.
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
    return std::string("the peer broke Gloo's protocol: ") + gloo_reason(error.what());
  }
  static bool is_gone(const tcp::Op& op) {
    return op.ubuf && !gloo::NonOwningPtr<tcp::UnboundBuffer>(op.ubuf);
  }

  const std::shared_ptr<PairEvents> events_;
};

class SafeContext final : public tcp::Context {
 public:
  SafeContext(std::shared_ptr<tcp::Device> device, int me, int count, GlooMesh::OnDown on_down)
      : tcp::Context(std::move(device), me, count), on_down_(std::move(on_down)) {}

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

std::string gloo_reason(std::string_view text) {
  const std::size_t end = text.starts_with('[') ? text.find("] ") : std::string_view::npos;
  return std::string(end == std::string_view::npos ? text : text.substr(end + 2));
}

bool is_gloo_timeout(std::string_view text) {
  return text.find("imeout") != std::string_view::npos ||   // of the application, of connecting
         text.find("Timed out") != std::string_view::npos;  // of this wait
}

// Nothing listens or connects there: that is only where Gloo would.
std::shared_ptr<GlooDevice> make_gloo_device() {
  try {
    return std::make_shared<SafeDevice>(tcp::CreateDeviceAttr(tcp::attr("127.0.0.1")));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::system_error&) {  // no thread available: not the address's fault
    throw;
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kUnavailable,
                concat("Gloo does not work here: ", gloo_reason(error.what())));
  }
}

GlooMesh::GlooMesh(std::shared_ptr<GlooDevice> device, int rank, int size, OnDown on_down)
    : rank_(rank), size_(size) {
  try {
    GlooDevice& event_thread = *device;
    context_ = std::make_shared<SafeContext>(std::move(device), rank, size, std::move(on_down));
    Errand(event_thread, [this] {
      for (int peer = 0; peer < size_; ++peer) {
        if (peer != rank_) context_->createPair(peer);
      }
    }).run();
  } catch (const std::exception& error) {
    throw NetError(NetFailure::kClosed,
                   concat("Gloo cannot make a connection: ", gloo_reason(error.what())));
  }
}

GlooMesh::~GlooMesh() { close(); }

void GlooMesh::adopt(int peer, Fd socket) {
  bool is_adopted = false;
  try {
    is_adopted = safe(*context_).pair(peer).adopt(std::move(socket));
  } catch (const std::exception& error) {
    throw NetError(NetFailure::kClosed,
                   concat("Gloo cannot use a connection: ", gloo_reason(error.what())));
  }
  if (!is_adopted)
    throw NetError(NetFailure::kClosed, "the connection was closed while it was made");
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
