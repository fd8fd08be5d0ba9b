// How a server handles peers that misbehave: it refuses them, logs, and continues to serve all
// others.
#include <cstring>
#include <deque>
#include <functional>

#include <poll.h>
#include <unistd.h>

#include "src/net/bytes.h"
#include "src/net/connection_core.h"
#include "src/net/handshake.h"
#include "src/net/link.h"
#include "src/net/socket.h"
#include "src/net/wire.h"
#include "tests/net/fixture.h"

namespace satrap::net {
namespace {

std::int64_t port_of(const std::string& address) {
  return std::stoll(address.substr(address.rfind(' ') + 1));
}

std::string control_request(const std::string& server = "shard") {
  return ByteWriter()
      .put(static_cast<std::uint8_t>(Purpose::kControl))
      .put_text(server)
      .put_text("rogue")
      .bytes();
}

std::string link_request(const std::string& key) {
  return ByteWriter()
      .put(static_cast<std::uint8_t>(Purpose::kLink))
      .put_text("shard")
      .put_text(key)
      .bytes();
}

/// A client that completes the handshakes and then sends anything.
class Rogue {
 public:
  Rogue(const Server& server, const Endpoint& endpoint, bool with_link = true)
      : port_(port_of(server.address())),
        token_(endpoint.options().token),
        link_(std::make_shared<Link>(make_gloo_device(), kClientRank, 2)),
        control_(std::make_unique<FrameSocket>(connect_tcp("127.0.0.1", port_, soon()),
                                               kMaxHandshakeBytes)) {
    const std::string answer = introduce(*control_, kMagic, token_, control_request(), soon());
    ByteReader reader(answer);
    for (int i = 0; i < 3; ++i) reader.get<std::int64_t>();
    key_ = reader.get_text();
    if (with_link) link_->adopt(kServerRank, open_link(key_).release());
  }
  ~Rogue() { link_->close(NetFailure::kClosed, "test over"); }

  const std::string& key() const { return key_; }

  FrameSocket open_link(const std::string& key) const {
    FrameSocket socket(connect_tcp("127.0.0.1", port_, soon()), kMaxHandshakeBytes);
    introduce(socket, kMagic, token_, link_request(key), soon());
    return socket;
  }

  static RequestHeader header(std::int64_t payload_bytes) {
    RequestHeader header{};
    header.magic = kMagic;
    header.request_id = 1;
    header.payload_bytes = payload_bytes;
    header.inline_bytes = kInlineReplyBytes;
    header.op = 1;
    return header;
  }

  void send(const RequestHeader& header, const std::string& payload) {
    auto& message = messages_.emplace_back(kRequestHeaderBytes + payload.size());
    std::memcpy(message.data(), &header, sizeof(header));
    std::memcpy(message.data() + kRequestHeaderBytes, payload.data(), payload.size());
    send_raw(message, kRequestSlot);
  }
  void send_raw(Bytes& message, std::uint64_t slot) {
    const auto bytes = static_cast<std::int64_t>(message.size());
    sends_.push_back(std::make_unique<LinkBuffer>(link_, message.data(), bytes));
    sends_.back()->post_send(kServerRank, slot, 0, bytes);
  }

  bool is_dropped() {
    return eventually([&] { return link_->breaker()->is_tripped(); });
  }

 private:
  const std::int64_t port_;
  const std::string token_;
  std::shared_ptr<Link> link_;
  std::unique_ptr<FrameSocket> control_;
  std::string key_;
  std::deque<Bytes> messages_;
  std::vector<std::unique_ptr<LinkBuffer>> sends_;
};

class RobustnessTest : public NetTest {
 protected:
  RobustnessTest() {
    ServerOptions small;
    small.slot_bytes = 4096;
    small.max_request_bytes = 1 << 20;
    small.max_in_flight = 2;
    small.setup_timeout_ms = 1500;
    server_ = serve(
        [this](std::unique_ptr<ServerCall>& call) {
          if (call->op() == 2) {
            kept_ = std::move(call);
          } else {
            echo(call);
          }
        },
        small);
    good_ = std::make_unique<Connection>(connect());
  }

  // The server still serves others, connected before or after.
  void expect_unharmed() {
    Ticket before = good_->call_for_any_size(1, request(1), soon());
    EXPECT_EQ(before.wait().size(), 8U);
    Connection fresh = connect();
    Ticket after = fresh.call_for_any_size(1, request(1), soon());
    EXPECT_EQ(after.wait().size(), 8U);
  }

  void expect_dropped(const std::function<void(Rogue&)>& misbehave) {
    Rogue rogue(*server_, client_end_);
    try {
      misbehave(rogue);
    } catch (const NetError& error) {
      SUCCEED() << "dropped while it was still at it: " << error.what();
    }
    EXPECT_TRUE(rogue.is_dropped());
    expect_unharmed();
  }

  std::unique_ptr<ServerCall> kept_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Connection> good_;
};

TEST_F(RobustnessTest, GarbageInsteadOfARequest) {
  Bytes noise = some_bytes(1000);
  expect_dropped([&](Rogue& rogue) { rogue.send_raw(noise, kRequestSlot); });
}

TEST_F(RobustnessTest, MessageLargerThanTheSlot) {
  Bytes large = some_bytes(4097);
  expect_dropped([&](Rogue& rogue) { rogue.send_raw(large, kRequestSlot); });
}

TEST_F(RobustnessTest, AnnouncedSizeBeyondTheLimit) {
  expect_dropped([](Rogue& rogue) { rogue.send(Rogue::header((1 << 20) + 1), ""); });
  expect_dropped([](Rogue& rogue) { rogue.send(Rogue::header(-1), ""); });
  expect_dropped([](Rogue& rogue) { rogue.send(Rogue::header(std::int64_t{1} << 62), ""); });
}

TEST_F(NetTest, RequestThereIsNoMemoryForEndsItsConnectionOnly) {
  ServerOptions boundless;
  boundless.max_request_bytes = std::int64_t{1} << 62;
  const auto server = serve(echo, boundless);
  Connection good = connect();
  Rogue rogue(*server, client_end_);
  rogue.send(Rogue::header(std::int64_t{1} << 61), "");
  EXPECT_TRUE(rogue.is_dropped());
  EXPECT_EQ(good.call_for_any_size(1, request(1), soon()).wait().size(), 8U);
}

TEST_F(RobustnessTest, MoreBulkDataThanAnnounced) {
  Bytes bulk(20'000);
  expect_dropped([&](Rogue& rogue) {
    rogue.send(Rogue::header(10'000), "");
    rogue.send_raw(bulk, kBulkSlot);
  });
}

TEST_F(RobustnessTest, SlotThatDoesNotExist) {
  RequestHeader header = Rogue::header(0);
  header.slot = 2;
  expect_dropped([&](Rogue& rogue) { rogue.send(header, ""); });
}

TEST_F(RobustnessTest, RoomForAnAnswerThatMakesNoSense) {
  RequestHeader header = Rogue::header(0);
  header.reply_capacity = -2;
  expect_dropped([&](Rogue& rogue) { rogue.send(header, ""); });
  header.reply_capacity = 0;
  header.inline_bytes = -1;
  expect_dropped([&](Rogue& rogue) { rogue.send(header, ""); });
}

TEST_F(RobustnessTest, TwoRequestsInOneSlot) {
  RequestHeader header = Rogue::header(0);
  header.op = 2;
  expect_dropped([&](Rogue& rogue) {
    rogue.send(header, "");
    rogue.send(header, "");
  });
}

TEST_F(RobustnessTest, BytesThatDoNotMatchTheirChecksum) {
  RequestHeader header = Rogue::header(3);
  header.flags = kHasChecksum;
  header.checksum = 1;
  expect_dropped([&](Rogue& rogue) { rogue.send(header, "abc"); });
}

TEST_F(RobustnessTest, DataForASlotWhereNothingIsPosted) {
  // Gloo keeps it at the sender: the server sees an announcement and nothing else.
  Bytes bytes(100);
  Rogue rogue(*server_, client_end_);
  rogue.send_raw(bytes, 12345);
  expect_unharmed();
}

TEST_F(RobustnessTest, LinkThatDoesNotKnowTheKeyIsRefused) {
  Rogue rogue(*server_, client_end_, false);
  for (const std::string& key :
       {std::string(), std::string(32, 'x'), rogue.key() + "x", rogue.key().substr(1)}) {
    EXPECT_EQ(failure_of([&] { rogue.open_link(key); }), NetFailure::kRefused);
  }
  rogue.open_link(rogue.key());
  expect_unharmed();
}

TEST_F(RobustnessTest, SecondLinkForAConnectionIsDropped) {
  const Rogue rogue(*server_, client_end_);
  FrameSocket second = rogue.open_link(rogue.key());
  EXPECT_EQ(failure_of([&] { second.wait_receive(soon()); }), NetFailure::kClosed);
  expect_unharmed();
}

TEST_F(RobustnessTest, ClientThatNeverOpensItsLinkIsDroppedAfterTheSetupTimeout) {
  const Rogue silent(*server_, client_end_, false);
  EXPECT_EQ(server_->num_connections(), 2);
  EXPECT_TRUE(eventually([&] { return server_->num_connections() == 1; }));
  expect_unharmed();
}

TEST_F(NetTest, ClientThatDiesBeforeItsLinkIsGoneAtOnce) {
  ServerOptions patient;
  patient.setup_timeout_ms = 120'000;
  const auto server = serve(echo, patient);
  {
    Rogue rogue(*server, client_end_, false);
    EXPECT_EQ(server->num_connections(), 1);
  }
  EXPECT_TRUE(eventually([&] { return server->num_connections() == 0; }));
}

TEST_F(NetTest, ServerThatDiesBeforeTheLinkEndsTheAttemptAtOnce) {
  const Fd listener = listen_tcp("127.0.0.1", 0);
  std::thread half_a_server([&] {
    wait_ready(listener.get(), POLLIN, soon());
    Visitor visitor(accept_tcp(listener), kMagic, soon());
    while (!visitor.advance("secret")) wait_ready(visitor.fd(), POLLIN, soon());
    const std::string answer = ByteWriter()
                                   .put(std::int64_t{1})
                                   .put(std::int64_t{4096})
                                   .put(std::int64_t{4096})
                                   .put_text("key")
                                   .bytes();
    const FrameSocket control = visitor.accept("secret", answer);
    wait_ready(listener.get(), POLLIN, soon());  // for the second connection
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(failure_of([&] {
              Connection::Core(client_end_.impl(), concat("127.0.0.1 ", local_port(listener)),
                               "shard", "test", Deadline::after_ms(120'000));
            }),
            NetFailure::kClosed);
  EXPECT_LT(seconds_since(begin), 60.0);
  half_a_server.join();
}

TEST_F(RobustnessTest, ReservedOperationIsAnErrorOfThatRequestOnly) {
  Ticket ticket = good_->call_for_any_size(kFirstReservedOp + 7, request(1), soon());
  EXPECT_EQ(failure_of([&] { ticket.wait(); }), NetFailure::kRemote);
  expect_unharmed();
}

TEST_F(RobustnessTest, GarbageSilenceAndOversizedFramesAtTheDoor) {
  const auto stranger = [&] {
    return FrameSocket(connect_tcp("127.0.0.1", port_of(server_->address()), soon()), 1 << 20);
  };
  const auto is_dropped = [](FrameSocket& socket) {
    return failure_of([&] {
             for (;;) socket.wait_receive(soon());
           }) == NetFailure::kClosed;
  };
  FrameSocket garbage = stranger(), huge = stranger(), silent = stranger();
  garbage.wait_send(std::string(300, 'x'), soon());
  EXPECT_TRUE(is_dropped(garbage));
  const std::uint32_t length = 0x7FFFFFFF;
  ASSERT_EQ(write(huge.fd(), &length, sizeof(length)), 4);
  EXPECT_TRUE(is_dropped(huge));
  // Through the handshake, with a request that makes no sense.
  FrameSocket liar = stranger();
  EXPECT_EQ(failure_of([&] { introduce(liar, kMagic, client_end_.options().token, "\1", soon()); }),
            NetFailure::kClosed);
  EXPECT_TRUE(is_dropped(silent)) << "after the setup timeout";
  expect_unharmed();
}

}  // namespace
}  // namespace satrap::net
