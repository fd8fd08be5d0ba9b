#include "satrap/net/store.h"

#include <set>

#include "satrap/net/tcp_store.h"
#include "src/net/bytes.h"
#include "src/net/socket.h"
#include "src/net/store_protocol.h"
#include "tests/net/fixture.h"

namespace satrap::net {
namespace {

// What every kind of store must do.
class StoreTest : public testing::TestWithParam<std::string> {
 protected:
  // Another process's view of the same store.
  std::shared_ptr<Store> open() {
    const bool is_file = GetParam() == "File";
    return open_store(is_file ? "file://" + folder_.path() + "/store" : server_.url(), "secret",
                      soon());
  }
  TemporaryDirectory folder_;
  TcpStoreServer server_{"127.0.0.1", 0, "secret"};
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
  const std::string longest(Store::kMaxKeyBytes, 'k');
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
  PrefixStore first("attempt-1/", open()), second("attempt-2/", open());
  first.set("x", "1");
  EXPECT_FALSE(second.get("x"));
  EXPECT_EQ(open()->get("attempt-1/x"), "1");
}

TEST(TcpStore, WrongTokenIsRefusedAtOnceWithTheReason) {
  const TcpStoreServer server("127.0.0.1", 0, "secret");
  const std::string message = message_of([&] { open_store(server.url(), "wrong", soon()); });
  EXPECT_NE(message.find("refused the connection: wrong token"), std::string::npos) << message;
}

TEST(TcpStore, ServerMayStartLaterAndMayStartAgain) {
  std::int64_t port = 0;
  {
    const TcpStoreServer to_find_a_port("127.0.0.1", 0, "secret");
    port = to_find_a_port.port();
  }
  std::unique_ptr<TcpStoreServer> server;
  std::thread later(
      [&] { server = std::make_unique<TcpStoreServer>("127.0.0.1", port, "secret"); });
  TcpStore store("127.0.0.1", port, "secret", soon());
  later.join();
  store.set("x", "1");
  server.reset();
  server = std::make_unique<TcpStoreServer>("127.0.0.1", port, "secret");
  EXPECT_FALSE(store.get("x")) << "the values were those of the process that is gone";
}

TEST(TcpStore, NobodyThereEndsAtTheDeadline) {
  EXPECT_EQ(failure_of([] { TcpStore("127.0.0.1", 1, "secret", Deadline::after_ms(40)); }),
            NetFailure::kTimeout);
}

TEST(TcpStore, GarbageAndOversizedMessagesEndTheirOwnConnectionOnly) {
  const TcpStoreServer server("127.0.0.1", 0, "secret");
  TcpStore store("127.0.0.1", server.port(), "secret", soon());
  const auto stranger = [&] {
    return FrameSocket(connect_tcp("127.0.0.1", server.port(), soon()), 1 << 20);
  };
  const auto is_dropped = [](FrameSocket& socket) {
    return failure_of([&] {
             for (;;) socket.wait_receive(soon());
           }) == NetFailure::kClosed;
  };
  for (const std::string& hello : {std::string(3, 'x'), std::string(100, 'x'),
                                   std::string(store_protocol::kMaxHelloBytes + 1, 'x')}) {
    FrameSocket socket = stranger();
    socket.wait_send(hello, soon());
    EXPECT_TRUE(is_dropped(socket)) << hello.size() << " bytes";
  }
  // The right token, but then an unknown operation, or a frame that announces 4 GiB.
  const std::string hello =
      ByteWriter().put(store_protocol::kMagic).put_text(std::string("secret")).bytes();
  FrameSocket member = stranger();
  member.wait_send(hello, soon());
  member.wait_receive(soon());
  member.wait_send(ByteWriter().put(std::uint8_t{200}).put_text(std::string("x")).bytes(), soon());
  EXPECT_TRUE(is_dropped(member));
  FrameSocket huge = stranger();
  huge.wait_send(hello, soon());
  huge.wait_receive(soon());
  const std::uint32_t length = 0xFFFFFFFF;
  ASSERT_EQ(write(huge.fd(), &length, sizeof(length)), 4);
  EXPECT_TRUE(is_dropped(huge));

  store.set("x", "still here");
  EXPECT_EQ(store.get("x"), "still here");
}

TEST(Store, UnknownFormOfUrlIsAConfigurationError) {
  for (const char* url :
       {"", "file://", "tcp://host", "tcp://:1", "tcp://h:0", "tcp://h:x", "redis://h:1"}) {
    EXPECT_THROW(open_store(url, "", soon()), Error) << url;
  }
}

}  // namespace
}  // namespace satrap::net
