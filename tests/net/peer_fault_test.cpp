// Faults of whole processes: killed, or stopped, in the middle of a transfer.
#include <cstring>

#include <signal.h>

#include "satrap/net/reconnecting_client.h"
#include "tests/net/fixture.h"
#include "tests/support/peer_process.h"

namespace satrap::net {
namespace {

EndpointOptions quick_heartbeats() {
  EndpointOptions options;
  options.token = "secret";
  options.heartbeat_interval_ms = 100;
  options.heartbeat_timeout_ms = 2000;
  return options;
}

// A server in another process. Op 1 echoes; op 2 answers with as many bytes as requested; op 3 is
// never answered; op 4 adds the number to a sum in the store's folder, once per request, and
// returns it.
void run_server(const std::string& folder) {
  FileRendezvous store(folder);
  const Endpoint endpoint(quick_heartbeats());
  std::mutex mutex;
  std::vector<std::unique_ptr<ServerCall>> kept;
  const Server server(endpoint, store, "shard", {}, [&](std::unique_ptr<ServerCall>& call) {
    const std::lock_guard lock(mutex);
    std::int64_t number = 0;
    std::memcpy(&number, call->payload().data(), std::min(sizeof(number), call->payload().size()));
    if (call->op() == 1)
      echo(call);
    else if (call->op() == 2)
      call->reply(Bytes(static_cast<std::size_t>(number), std::byte{7}));
    else
      kept.push_back(std::move(call));
  });
  store.wait("end", Deadline::after_ms(600'000));
}
const PeerRole kServer("server", run_server);

// A client in another process that sends 16 MiB requests until it is killed.
void run_client(const std::string& folder) {
  FileRendezvous store(folder);
  const Endpoint endpoint(quick_heartbeats());
  Connection connection(endpoint, store, "shard", "victim", soon());
  const RequestBuffer request(endpoint, 16 << 20);
  for (;;) connection.call_for_any_size(1, request, soon(), {{}, false, 16 << 20}).wait();
}
const PeerRole kClient("client", run_client);

class PeerFaultTest : public testing::Test {
 protected:
  RequestBuffer request(std::int64_t number) {
    return {endpoint_, {std::as_bytes(std::span(&number, 1))}};
  }
  Connection connect() { return {endpoint_, *store_, "shard", "test", soon()}; }

  TemporaryDirectory folder_;
  std::shared_ptr<FileRendezvous> store_ = std::make_shared<FileRendezvous>(folder_.path());
  Endpoint endpoint_{quick_heartbeats()};
};

TEST_F(PeerFaultTest, KilledServerEndsAllWaitsAtOnce) {
  PeerProcess server("server", folder_.path());
  Connection connection = connect();
  Bytes room(1 << 20);
  Ticket waiting = connection.call(3, request(0), room, Deadline::after_ms(60'000));
  Ticket another = connection.call_for_any_size(3, request(0), Deadline::after_ms(60'000));
  server.send(SIGKILL);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(failure_of([&] { waiting.wait(); }), NetFailure::kClosed);
  EXPECT_EQ(failure_of([&] { another.wait(); }), NetFailure::kClosed);
  EXPECT_LT(seconds_since(begin), 5.0);
  EXPECT_EQ(server.wait(), -SIGKILL);
}

TEST_F(PeerFaultTest, ServerKilledInTheMiddleOfTransfersBothWays) {
  for (int round = 0; round < 10; ++round) {
    PeerProcess server("server", folder_.path());
    Connection connection = connect();
    constexpr std::int64_t kBytes = 64 << 20;
    const RequestBuffer large(endpoint_, kBytes);
    Bytes room(static_cast<std::size_t>(kBytes));
    Ticket sending = connection.call_for_any_size(1, large, Deadline::after_ms(60'000));
    Ticket receiving = connection.call(2, request(kBytes), room, Deadline::after_ms(60'000));
    if (round % 2 == 1) {
      ASSERT_TRUE(eventually([&] { return peek(room.data()) != std::byte{0}; }));
    }
    server.send(SIGKILL);
    const auto begin = std::chrono::steady_clock::now();
    const auto a = failure_of([&] { sending.wait(); });
    const auto b = failure_of([&] { receiving.wait(); });
    EXPECT_TRUE(!a || a == NetFailure::kClosed);
    EXPECT_TRUE(!b || b == NetFailure::kClosed);
    EXPECT_LT(seconds_since(begin), 20.0) << "not the deadline of the calls";
    store_->erase("net/shard");
  }
}

TEST_F(PeerFaultTest, StoppedServerCountsAsHungAfterTheHeartbeatTimeout) {
  PeerProcess server("server", folder_.path());
  Connection connection = connect();
  Ticket waiting = connection.call_for_any_size(1, request(1), soon());
  waiting.wait();
  server.stop();
  Ticket hung = connection.call_for_any_size(1, request(1), Deadline::after_ms(120'000));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NE(message_of([&] { hung.wait(); }).find("nothing heard"), std::string::npos);
  EXPECT_GT(seconds_since(begin), 1.0);
  EXPECT_LT(seconds_since(begin), 30.0);
  server.send(SIGCONT);
  EXPECT_TRUE(connect().is_open()) << "it lives, and takes new connections";
}

TEST_F(PeerFaultTest, StoppedClientLosesItsConnectionAfterTheHeartbeatTimeout) {
  const Server server(endpoint_, *store_, "shard", {}, echo);
  PeerProcess client("client", folder_.path());
  ASSERT_TRUE(eventually([&] { return server.num_connections() == 1; }));
  client.stop();
  EXPECT_TRUE(eventually([&] { return server.num_connections() == 0; }));
}

TEST_F(PeerFaultTest, StopShorterThanTheTimeoutIsNoticedByNobody) {
  PeerProcess server("server", folder_.path());
  Connection connection = connect();
  server.stop();
  Ticket ticket = connection.call_for_any_size(1, request(1), soon());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  server.send(SIGCONT);
  EXPECT_EQ(ticket.wait().size(), 8U);
}

TEST_F(PeerFaultTest, KilledClientsLeaveTheServerAsItWas) {
  const Server server(endpoint_, *store_, "shard", {}, echo);
  for (int round = 0; round < 10; ++round) {
    PeerProcess client("client", folder_.path());
    ASSERT_TRUE(eventually([&] { return server.num_connections() == 1; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(round * 5));  // at some point of its work
    client.send(SIGKILL);
    ASSERT_TRUE(eventually([&] { return server.num_connections() == 0; })) << round;
  }
  Connection connection = connect();
  EXPECT_EQ(connection.call_for_any_size(1, request(1), soon()).wait().size(), 8U);
}

TEST_F(PeerFaultTest, ReconnectingClientOutlivesKilledServers) {
  ReconnectingClient client(endpoint_, store_, "shard", "rank-0", 0, 5000);
  std::unique_ptr<PeerProcess> server;
  for (int round = 0; round < 10; ++round) {
    server = std::make_unique<PeerProcess>("server", folder_.path());
    auto pending = client.call_for_any_size(1, round, request(round), Deadline::after_ms(60'000));
    if (round % 2 == 0) {
      EXPECT_EQ(pending->wait().size(), 8U);
    }
    server->send(SIGKILL);
    server = std::make_unique<PeerProcess>("server", folder_.path());
    if (round % 2 == 1) {
      EXPECT_EQ(pending->wait().size(), 8U);
    }
    server.reset();
  }
  EXPECT_GE(client.num_reconnects(), 5);
}

}  // namespace
}  // namespace satrap::net
