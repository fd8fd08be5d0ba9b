#include "satrap/net/rendezvous.h"

#include <cerrno>
#include <fstream>
#include <limits>
#include <set>

#include <sys/socket.h>
#include <unistd.h>

#include "satrap/net/tcp_rendezvous.h"
#include "src/net/bytes.h"
#include "src/net/handshake.h"
#include "src/net/rendezvous_protocol.h"
#include "src/net/socket.h"
#include "tests/net/fixture.h"

namespace satrap::net {
namespace {

// What every kind of store must do.
class StoreTest : public testing::TestWithParam<std::string> {
 protected:
  // Another process's view of the same store.
  std::shared_ptr<Rendezvous> open() {
    const bool is_file = GetParam() == "File";
    return open_rendezvous(is_file ? "file://" + folder_.path() + "/store" : server_.url(),
                           "secret", soon());
  }
  TemporaryDirectory folder_;
  TcpRendezvousServer server_{"127.0.0.1", 0, "secret"};
};

INSTANTIATE_TEST_SUITE_P(Kind, StoreTest, testing::Values("File", "Tcp"), [](const auto& kind) {
  return kind.param;
});

TEST_P(StoreTest, ValuesAreSeenByOthersReplacedAndErased) {
  const auto a = open(), b = open();
  EXPECT_FALSE(a->get("x"));
  const std::string bytes("\0\n\xff", 3);
  a->set("x", bytes);
  EXPECT_EQ(b->get("x"), bytes);
  b->set("x", "");
  EXPECT_EQ(a->get("x"), "");
  a->erase("x");
  a->erase("x");
  EXPECT_FALSE(b->get("x"));
}

TEST_P(StoreTest, KeysOfAnyBytesAndLengthAreDistinct) {
  const auto store = open();
  const std::string longest(Rendezvous::kMaxKeyBytes, 'k');
  const std::vector<std::string> keys{"a/b", "a_b", "a%2Fb", ".",
                                      "..",  "a",   longest, longest.substr(1)};
  for (const std::string& key : keys) store->set(key, key);
  for (const std::string& key : keys) EXPECT_EQ(store->get(key), key);
  EXPECT_THROW(store->set(longest + "k", ""), Error);
}

TEST_P(StoreTest, WaitEndsWithTheValueOrTheDeadline) {
  const auto a = open(), b = open();
  Gate waiting;
  std::thread setter([&] {
    waiting.wait();
    b->set("late", "value");
  });
  waiting.open();
  EXPECT_EQ(a->wait("late", soon()), "value");
  setter.join();
  EXPECT_EQ(failure_of([&] { a->wait("never", Deadline::after_ms(30)); }), NetFailure::kTimeout);
}

TEST_P(StoreTest, ACounterWrapsAround) {
  const auto store = open();
  store->set("n", std::to_string(std::numeric_limits<std::int64_t>::max()));
  EXPECT_EQ(store->add("n", 1), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(store->add("n", -1), std::numeric_limits<std::int64_t>::max());
}

TEST_P(StoreTest, EveryAddIsCountedOnce) {
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::set<std::int64_t> sums;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const auto store = open();
      for (int i = 0; i < 25; ++i) {
        const std::int64_t sum = store->add("n", 2);
        const std::lock_guard lock(mutex);
        sums.insert(sum);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sums.size(), 100U);
  EXPECT_EQ(open()->get("n"), "200");
}

TEST_P(StoreTest, PrefixesDoNotMeet) {
  PrefixRendezvous first("attempt-1/", open()), second("attempt-2/", open());
  first.set("x", "1");
  EXPECT_FALSE(second.get("x"));
  EXPECT_EQ(open()->get("attempt-1/x"), "1");
}

TEST(TcpRendezvous, WrongTokenIsRefusedAtOnceWithTheReason) {
  const TcpRendezvousServer server("127.0.0.1", 0, "secret");
  const std::string message = message_of([&] { open_rendezvous(server.url(), "wrong", soon()); });
  EXPECT_NE(message.find("refused the connection: wrong token"), std::string::npos) << message;
}

TEST(TcpRendezvous, ServerMayStartLaterAndMayStartAgain) {
  std::int64_t port = 0;
  {
    const TcpRendezvousServer to_find_a_port("127.0.0.1", 0, "secret");
    port = to_find_a_port.port();
  }
  std::unique_ptr<TcpRendezvousServer> server;
  std::thread later(
      [&] { server = std::make_unique<TcpRendezvousServer>("127.0.0.1", port, "secret"); });
  TcpRendezvous store("127.0.0.1", port, "secret", soon());
  later.join();
  store.set("x", "1");
  server.reset();
  server = std::make_unique<TcpRendezvousServer>("127.0.0.1", port, "secret");
  EXPECT_FALSE(store.get("x")) << "the values were those of the process that is gone";
}

TEST(TcpRendezvous, NobodyThereEndsAtTheDeadline) {
  EXPECT_EQ(failure_of([] { TcpRendezvous("127.0.0.1", 1, "secret", Deadline::after_ms(40)); }),
            NetFailure::kTimeout);
}

TEST(TcpRendezvous, GarbageAndOversizedMessagesEndTheirOwnConnectionOnly) {
  const TcpRendezvousServer server("127.0.0.1", 0, "secret");
  TcpRendezvous store("127.0.0.1", server.port(), "secret", soon());
  const auto stranger = [&] {
    return FrameSocket(connect_tcp("127.0.0.1", server.port(), soon()), 1 << 20);
  };
  const auto is_dropped = [](FrameSocket& socket) {
    return failure_of([&] {
             for (;;) socket.wait_receive(soon());
           }) == NetFailure::kClosed;
  };
  for (const std::string& hello : {std::string(), std::string(3, 'x'), std::string(100, 'x'),
                                   std::string(kMaxHandshakeBytes + 1, 'x')}) {
    FrameSocket socket = stranger();
    socket.wait_send(hello, soon());
    EXPECT_TRUE(is_dropped(socket)) << hello.size() << " bytes";
  }
  // With the token, but then an unknown operation, nothing, or a frame that announces 4 GiB.
  const auto member = [&] {
    FrameSocket socket = stranger();
    introduce(socket, store_protocol::kMagic, "secret", "", soon());
    return socket;
  };
  FrameSocket unknown = member(), empty = member(), huge = member();
  unknown.wait_send(ByteWriter().put(std::uint8_t{200}).put_text("x").bytes(), soon());
  EXPECT_TRUE(is_dropped(unknown));
  empty.wait_send("", soon());
  EXPECT_TRUE(is_dropped(empty));
  const std::uint32_t length = 0xFFFFFFFF;
  ASSERT_EQ(write(huge.fd(), &length, sizeof(length)), 4);
  EXPECT_TRUE(is_dropped(huge));

  store.set("x", "still here");
  EXPECT_EQ(store.get("x"), "still here");
}

// Sends the same bytes as fast as the other end takes them, over a new connection whenever it hangs
// up; with the token, if it is given, over connections that begin properly.
class Flood {
 public:
  Flood(std::int64_t port, std::string bytes, std::string token = "") {
    thread_ = std::thread([this, port, bytes = std::move(bytes), token = std::move(token)] {
      while (!stop_) {
        const auto begin = [&] {
          FrameSocket socket(connect_tcp("127.0.0.1", port, soon()), kMaxHandshakeBytes);
          if (!token.empty()) introduce(socket, store_protocol::kMagic, token, "", soon());
          ++num_connections_;
          return socket;
        };
        try {
          const FrameSocket socket = begin();
          while (!stop_ && (send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0 ||
                            errno == EAGAIN)) {
            std::this_thread::yield();
          }
        } catch (const NetError&) {
          continue;
        }
      }
    });
  }
  ~Flood() {
    stop_ = true;
    thread_.join();
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;
  int num_connections() const { return num_connections_; }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> num_connections_{0};
  std::thread thread_;
};

std::int64_t resident_kib() {
  std::int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

TEST(TcpRendezvous, FloodsOfStrangersAndMembersStarveNobodyAndCostNoMemory) {
  const TcpRendezvousServer server("127.0.0.1", 0, "secret");
  TcpRendezvous store("127.0.0.1", server.port(), "secret", soon());
  const std::string get = ByteWriter().put(std::uint8_t{1}).put_text("x").bytes();
  const auto length = static_cast<std::uint32_t>(get.size());
  std::string gets;
  for (int i = 0; i < 1000; ++i) {
    gets += std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + get;
  }
  for (const auto& [bytes, token] :
       {std::pair{std::string(65536, '\0'), ""}, std::pair{std::string(65536, 'x'), ""},
        std::pair{std::string(65536, '\0'), "secret"}, std::pair{gets, "secret"}}) {
    const Flood flood(server.port(), bytes, token);
    ASSERT_TRUE(eventually([&] { return flood.num_connections() > 0; }));
    const std::int64_t before = resident_kib();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 200; ++i) {
      store.set("x", std::to_string(i));
      EXPECT_EQ(store.get("x"), std::to_string(i));
    }
    while (seconds_since(begin) < 0.5) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_LT(seconds_since(begin), 20.0);
    EXPECT_LT(resident_kib() - before, 32 << 10);
  }
}

TEST(TcpRendezvous, WaitsEndWhenTheyAreStopped) {
  std::atomic<bool> stop{false};
  auto server = std::make_unique<TcpRendezvousServer>("127.0.0.1", 0, "secret");
  const std::int64_t port = server->port();
  const Deadline deadline = Deadline::after_ms(60'000).unless(stop);
  TcpRendezvous store("127.0.0.1", port, "secret", deadline);
  const auto expect_stopped = [&](const std::function<void()>& wait) {
    stop = false;
    std::thread stopping([&] { stop = true; });
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(failure_of(wait), NetFailure::kStopped);
    EXPECT_LT(seconds_since(begin), 10.0);
    stopping.join();
  };
  expect_stopped([&] { store.wait("never", deadline); });
  store.set("x", "1");
  EXPECT_EQ(store.get("x"), "1") << "what is there is found though it is stopped";
  server.reset();
  expect_stopped([&] { store.set("x", "1"); });
  expect_stopped([&] { TcpRendezvous("127.0.0.1", port, "secret", deadline); });
  const Fd silent = listen_tcp("127.0.0.1", port);  // takes connections and says nothing
  expect_stopped([&] { TcpRendezvous("127.0.0.1", port, "secret", deadline); });
}

TEST(FileRendezvous, WaitEndsWhenItIsStopped) {
  const TemporaryDirectory folder;
  FileRendezvous store(folder.path());
  const std::atomic<bool> stop{true};
  const Deadline deadline = Deadline::after_ms(60'000).unless(stop);
  EXPECT_EQ(failure_of([&] { store.wait("never", deadline); }), NetFailure::kStopped);
  store.set("x", "1");
  EXPECT_EQ(store.wait("x", deadline), "1");
}

TEST(TcpRendezvous, WithoutATokenItServesThisMachineOnly) {
  EXPECT_NO_THROW(TcpRendezvousServer("localhost", 0, ""));
  const std::string message = message_of([] { TcpRendezvousServer("0.0.0.0", 0, ""); });
  EXPECT_NE(message.find("SATRAP_TOKEN"), std::string::npos) << message;
}

TEST(Rendezvous, UnknownFormOfUrlIsAConfigurationError) {
  for (const char* url :
       {"", "file://", "tcp://host", "tcp://:1", "tcp://h:0", "tcp://h:x", "redis://h:1"}) {
    EXPECT_THROW(open_rendezvous(url, "", soon()), Error) << url;
  }
}

}  // namespace
}  // namespace satrap::net
