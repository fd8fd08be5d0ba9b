#include "src/net/door.h"

#include <atomic>
#include <cerrno>
#include <thread>

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/net/poller.h"
#include "tests/net/link_fixture.h"

namespace satrap::net {
namespace {

constexpr std::uint64_t kDoorProtocol = 77;

// A door with a loop that serves it.
class DoorTest : public testing::Test {
 protected:
  explicit DoorTest(std::int64_t timeout_ms = 60'000)
      : door_(
            listen_tcp("127.0.0.1", 0),
            {.magic = kDoorProtocol, .token = "secret", .name = "test", .timeout_ms = timeout_ms}) {
    thread_ = std::thread([this] {
      while (!stop_) {
        ++num_rounds_;
        std::vector<pollfd> fds{{wake_.fd(), POLLIN, 0}};
        door_.watch(fds);
        poll(fds.data(), fds.size(), static_cast<int>(door_.next().remaining_ms()));
        door_.serve(fds, [](Visitor& visitor) { visitor.accept("secret", "hello"); });
        num_refused_ = door_.num_refused();
      }
    });
  }
  ~DoorTest() override {
    stop_ = true;
    wake_.notify();
    thread_.join();
  }

  Fd connect() const { return connect_tcp("127.0.0.1", door_.port(), soon()); }
  void expect_open() const {
    FrameSocket socket(connect(), kMaxHandshakeBytes);
    EXPECT_EQ(introduce(socket, kDoorProtocol, "secret", "x", soon()), "hello");
  }
  static bool is_dropped(const Fd& fd) {
    char byte = 0;
    return wait_ready(fd.get(), POLLIN, soon()) && recv(fd.get(), &byte, 1, 0) <= 0;
  }

  Door door_;
  WakeUp wake_;
  std::atomic<bool> stop_{false};
  std::atomic<std::int64_t> num_rounds_{0}, num_refused_{0};
  std::thread thread_;
};

TEST_F(DoorTest, SilentStrangersTakeNobodysPlace) {
  std::vector<Fd> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(connect());
  expect_open();
  EXPECT_TRUE(is_dropped(silent.front())) << "the oldest of more than there is room for";
}

class HastyDoorTest : public DoorTest {
 protected:
  HastyDoorTest() : DoorTest(50) {}
};

TEST_F(HastyDoorTest, SilentStrangerIsDroppedInTime) {
  EXPECT_TRUE(is_dropped(connect()));
  EXPECT_TRUE(eventually([this] { return num_refused_ == 1; }));
}

// Descriptors taken by others in this process: none is left for a connection, and no stranger can
// be dropped for it.
TEST_F(DoorTest, WithoutDescriptorsItRestsAndThenGoesOn) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "UBSan, beside AddressSanitizer, needs a descriptor to look at an object";
#endif
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const Fd waiting = connect();
  ASSERT_TRUE(eventually([&] { return num_rounds_ > 1; }));
  std::vector<Fd> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  }
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(clients.back().get()) + 1;
  std::vector<Fd> taken;
  for (;;) {  // fills the gaps below the limit
    Fd fd(dup(0));
    if (!fd || fd.get() > clients.back().get()) break;
    taken.push_back(std::move(fd));
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<in_port_t>(door_.port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (const Fd& client : clients) {
    const int begun =
        ::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    EXPECT_TRUE(begun == 0 || errno == EINPROGRESS);
  }
  ASSERT_TRUE(eventually([&] { return num_refused_ > 1; }));
  const std::int64_t rounds = num_rounds_;
  const auto begin = std::chrono::steady_clock::now();
  while (seconds_since(begin) < 0.5) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_LT(num_rounds_ - rounds, 50) << "in half a second";
  setrlimit(RLIMIT_NOFILE, &before);
  taken.clear();
  clients.clear();
  expect_open();
}

}  // namespace
}  // namespace satrap::net
