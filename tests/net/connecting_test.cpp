#include <chrono>
#include <thread>

#include "satrap/net/connection.h"
#include "tests/net/fixture.h"

namespace satrap::net {
namespace {

using ConnectionTest = NetTest;

TEST_F(ConnectionTest, ConnectingWaitsForAServerThatComesLater) {
  std::unique_ptr<Server> server;
  std::thread later([&] { server = serve(echo); });
  Connection connection = connect();
  later.join();
  EXPECT_TRUE(connection.is_open());
}

TEST_F(ConnectionTest, ConnectingToNobodyEndsAtTheDeadline) {
  EXPECT_EQ(failure_of(
                [&] { Connection(client_end_, *store_, "shard", "test", Deadline::after_ms(30)); }),
            NetFailure::kTimeout);
  // The address of a server that no longer exists.
  serve(echo).reset();
  EXPECT_EQ(failure_of(
                [&] { Connection(client_end_, *store_, "shard", "test", Deadline::after_ms(60)); }),
            NetFailure::kTimeout);
}

TEST_F(ConnectionTest, ConnectingToAnAddressIsOneAttempt) {
  auto server = serve(echo);
  const std::string address = server->address();
  EXPECT_TRUE(Connection(client_end_, address, "shard", "test", soon()).is_open());
  server.reset();
  EXPECT_EQ(failure_of([&] { Connection(client_end_, address, "shard", "test", soon()); }),
            NetFailure::kClosed);
}

TEST_F(ConnectionTest, WrongTokenAndWrongNameAreRefusedWithTheReason) {
  const auto server = serve(echo);
  EndpointOptions wrong = options();
  wrong.token = "Secret";
  const Endpoint stranger(wrong);
  const std::string refusal =
      message_of([&] { Connection(stranger, *store_, "shard", "test", soon()); });
  EXPECT_NE(refusal.find("refused the connection: wrong token"), std::string::npos) << refusal;

  store_->set("net/other", server->address());
  const std::string misled =
      message_of([&] { Connection(client_end_, *store_, "other", "test", soon()); });
  EXPECT_NE(misled.find("this is server 'shard', not 'other'"), std::string::npos) << misled;
  EXPECT_EQ(server->num_connections(), 0);
  EXPECT_TRUE(connect().is_open());
}

TEST_F(ConnectionTest, ConnectionsBeyondTheLimitAreRefused) {
  ServerOptions one;
  one.max_connections = 1;
  const auto server = serve(echo, one);
  Connection first = connect();
  EXPECT_EQ(failure_of([&] { connect(); }), NetFailure::kRefused);
}

}  // namespace
}  // namespace satrap::net
