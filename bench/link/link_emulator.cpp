// Two network namespaces joined by a link with a given delay and rate, for benchmarks on one
// machine whose kernel need not have `tc netem`. Each namespace has a TUN device; a relay carries
// packets from one to the other and delays each as the link would.
//
//   link_emulator --delay-us 1000 --rate-mbit 1000
//   ip netns exec satrap-a PROGRAM ...     # 10.77.0.1
//   ip netns exec satrap-b PROGRAM ...     # 10.77.0.2
//
// The relay is a separate process: the namespaces are removed even if it fails. The next emulator
// removes the leftovers of a killed one. Needs root (CAP_NET_ADMIN, CAP_SYS_ADMIN), /dev/net/tun
// and iproute2; the exit status is 77 if rights or the device are missing.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr int kSkippedStatus = 77;
constexpr const char* kDevice = "link0";
constexpr const char* kNamespaces = "/run/netns/";

struct Options {
  std::string name = "satrap";
  std::int64_t delay_us = 1000;  // one way
  double rate_mbit = 1000.0;     // each way
  std::int64_t mtu_bytes = 65'000;
  std::int64_t queue_packets = 1000;
};

struct MissingRights : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail(const std::string& what) {
  const std::string message = what + ": " + std::strerror(errno);
  if (errno == EPERM || errno == EACCES || errno == ENOENT || errno == ENODEV || errno == ENXIO) {
    throw MissingRights(message);
  }
  throw std::runtime_error(message);
}

/// Runs a program to its end; returns whether it ended with 0.
bool run(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  if (posix_spawnp(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0) return false;
  int status = 0;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void ip(const std::vector<std::string>& words) {
  std::vector<std::string> command = {"ip"};
  command.insert(command.end(), words.begin(), words.end());
  if (run(command)) return;
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + word;
  throw MissingRights("`" + text + "` failed");
}

/// A named network namespace; created anew, removed at the end.
class Namespace {
 public:
  explicit Namespace(std::string name) : name_(std::move(name)) {
    if (std::filesystem::exists(kNamespaces + name_)) ip({"netns", "del", name_});
    ip({"netns", "add", name_});
  }
  ~Namespace() { run({"ip", "netns", "del", name_}); }
  Namespace(const Namespace&) = delete;
  Namespace& operator=(const Namespace&) = delete;

  /// Adds a TUN device here and returns its other end as a file. Packets are whole IP packets.
  int add_device(const std::string& address, const Options& options) const {
    const int device = open_device();
    ip({"-n", name_, "addr", "add", address + "/24", "dev", kDevice});
    ip({"-n", name_, "link", "set", kDevice, "mtu", std::to_string(options.mtu_bytes), "txqueuelen",
        std::to_string(options.queue_packets), "up"});
    ip({"-n", name_, "link", "set", "lo", "up"});
    return device;
  }

 private:
  int open_device() const {
    const int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    const int there = open((kNamespaces + name_).c_str(), O_RDONLY | O_CLOEXEC);
    if (home < 0 || there < 0 || setns(there, CLONE_NEWNET) != 0) fail(name_);
    const int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (device < 0) fail("/dev/net/tun");
    ifreq request{};
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    std::strncpy(request.ifr_name, kDevice, IFNAMSIZ - 1);
    if (ioctl(device, TUNSETIFF, &request) != 0) fail("TUNSETIFF");
    if (setns(home, CLONE_NEWNET) != 0) fail("setns");
    close(home);
    close(there);
    return device;
  }

  const std::string name_;
};

/// One direction of the link, with one thread. A packet leaves once the previous one has left and
/// its own bytes have been sent at the link's rate, and arrives after the delay. While the link is
/// busy nothing is read: packets wait in the queue of the sender's device, which drops the excess.
class Direction {
 public:
  Direction(int from, int to, const Options& options)
      : from_(from),
        to_(to),
        delay_(std::chrono::microseconds(options.delay_us)),
        ns_per_byte_(8000.0 / options.rate_mbit),
        max_bytes_(static_cast<std::size_t>(options.mtu_bytes)) {}

  [[noreturn]] void carry() {
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);  // ns; the usual 50 us are a lot here
    while (true) {
      const Clock::time_point now = Clock::now();
      deliver(now);
      const bool is_free = free_at_ <= now + kReadAhead;
      if (is_free && accept(now)) continue;
      wait(is_free);
    }
  }

 private:
  struct Packet {
    Clock::time_point due;
    std::vector<char> bytes;
    std::size_t size = 0;
  };

  /// Read ahead this far, so that the link does not idle while this thread wakes up.
  static constexpr nanoseconds kReadAhead = std::chrono::microseconds(500);
  static constexpr int kMaxBurst = 16;  // packets read before checking again which are due

  void deliver(Clock::time_point now) {
    while (!in_flight_.empty() && in_flight_.front()->due <= now) {
      std::unique_ptr<Packet>& packet = in_flight_.front();
      // A receiver without room loses the packet, as on any other link.
      [[maybe_unused]] const ssize_t written = write(to_, packet->bytes.data(), packet->size);
      spare_.push_back(std::move(packet));
      in_flight_.pop_front();
    }
  }

  /// Reads the available packets; returns whether there were any.
  bool accept(Clock::time_point now) {
    for (int count = 0; count < kMaxBurst && free_at_ <= now + kReadAhead; ++count) {
      std::unique_ptr<Packet> packet = spare_packet();
      const ssize_t size = read(from_, packet->bytes.data(), packet->bytes.size());
      if (size <= 0) {
        spare_.push_back(std::move(packet));
        return count > 0;
      }
      packet->size = static_cast<std::size_t>(size);
      const auto busy = static_cast<std::int64_t>(static_cast<double>(size) * ns_per_byte_);
      free_at_ = std::max(free_at_, now) + nanoseconds(busy);
      packet->due = free_at_ + delay_;
      in_flight_.push_back(std::move(packet));
    }
    return true;
  }

  void wait(bool is_free) {
    Clock::time_point until = Clock::now() + std::chrono::seconds(1);
    if (!in_flight_.empty()) until = std::min(until, in_flight_.front()->due);
    if (!is_free) until = std::min(until, free_at_ - kReadAhead);
    const std::int64_t left = std::max<std::int64_t>(0, nanoseconds(until - Clock::now()).count());
    const timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
    pollfd readable{from_, POLLIN, 0};
    ppoll(&readable, is_free ? 1 : 0, &timeout, nullptr);
  }

  std::unique_ptr<Packet> spare_packet() {
    if (spare_.empty()) {
      auto packet = std::make_unique<Packet>();
      packet->bytes.resize(max_bytes_);
      return packet;
    }
    std::unique_ptr<Packet> packet = std::move(spare_.back());  // the last used: still in the cache
    spare_.pop_back();
    return packet;
  }

  const int from_, to_;
  const nanoseconds delay_;
  const double ns_per_byte_;
  const std::size_t max_bytes_;
  Clock::time_point free_at_ = Clock::now();
  std::deque<std::unique_ptr<Packet>> in_flight_;
  std::vector<std::unique_ptr<Packet>> spare_;
};

/// The relay, in a process that ends with this one.
pid_t start_relay(int lock, int a, int b, const Options& options) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) fail("fork");
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  close(lock);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGINT, SIG_IGN);  // Ctrl-C is for the other process
  std::thread back([&] { Direction(b, a, options).carry(); });
  Direction(a, b, options).carry();
}

/// Only one emulator of a name runs at a time; the holder of the lock may remove another one's
/// leftovers. An address in the abstract namespace disappears with the process that holds it.
int take_lock(const std::string& name) {
  const std::string key = "link_emulator " + name;
  sockaddr_un address{};
  if (key.size() >= sizeof address.sun_path) throw std::runtime_error("--name is too long");
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, key.data(), key.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + key.size());
  const int lock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (lock < 0) fail("socket");
  if (bind(lock, reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    throw std::runtime_error("another link_emulator uses the name '" + name + "'");
  }
  return lock;
}

/// Waits until a signal requests the end (true) or the relay has ended (false).
bool wait_for_end(const sigset_t& signals, pid_t relay) {
  while (true) {
    int number = 0;
    sigwait(&signals, &number);
    if (number != SIGCHLD) return true;
    if (waitpid(relay, nullptr, WNOHANG) == relay) return false;
  }
}

int emulate(const Options& options) {
  if (geteuid() != 0) throw MissingRights("needs root");
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  sigprocmask(SIG_BLOCK, &signals, nullptr);  // from here on everything is cleaned up
  const int lock = take_lock(options.name);
  const Namespace a(options.name + "-a");
  const Namespace b(options.name + "-b");
  const std::array devices = {a.add_device("10.77.0.1", options),
                              b.add_device("10.77.0.2", options)};
  sigaddset(&signals, SIGCHLD);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const pid_t relay = start_relay(lock, devices[0], devices[1], options);
  for (const int device : devices) close(device);
  std::printf("ready %s-a 10.77.0.1 %s-b 10.77.0.2\n", options.name.c_str(), options.name.c_str());
  std::fflush(stdout);
  const bool was_asked = wait_for_end(signals, relay);
  if (was_asked) {
    kill(relay, SIGKILL);
    waitpid(relay, nullptr, 0);
  }
  close(lock);
  if (!was_asked) throw std::runtime_error("the relay has died");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App program("Two network namespaces joined by a link with a delay and a rate");
  program.add_option("--delay-us", options.delay_us, "one way, microseconds")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  program.add_option("--rate-mbit", options.rate_mbit, "each way, Mbit/s")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  program.add_option("--name", options.name, "the namespaces are NAME-a and NAME-b")
      ->capture_default_str();
  program
      .add_option("--mtu", options.mtu_bytes,
                  "bytes; large packets cost less CPU, but delay small ones longer")
      ->check(CLI::Range(576, 65'535))
      ->capture_default_str();
  program
      .add_option("--queue", options.queue_packets,
                  "packets that may wait for the link; further ones are lost")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI11_PARSE(program, argc, argv);
  try {
    return emulate(options);
  } catch (const MissingRights& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return kSkippedStatus;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
