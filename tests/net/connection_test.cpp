#include "satrap/net/connection.h"

#include <atomic>
#include <csignal>
#include <cstring>
#include <deque>
#include <numeric>
#include <thread>

#include "src/net/wire.h"
#include "tests/net/fixture.h"

namespace satrap::net {
namespace {

using ConnectionTest = NetTest;

// Sizes around every limit: nothing, inline replies, the ring's slots, whole bulk transfers.
class SizesTest : public NetTest, public testing::WithParamInterface<std::size_t> {};

TEST_P(SizesTest, RequestComesBackWhole) {
  ServerOptions small;
  small.slot_bytes = 64 << 10;
  const auto server = serve(echo, small);
  Connection connection = connect();
  const Bytes sent = some_bytes(GetParam());
  Bytes received(sent.size());
  // Twice: the second round uses memory that has been used before.
  for (int i = 0; i < 2; ++i) {
    const auto reply = connection.call(7, request(sent), received, soon()).wait();
    EXPECT_EQ(reply.data(), received.data());
    EXPECT_EQ(received, sent);
    Ticket ticket = connection.call_for_any_size(7, request(sent), soon());
    EXPECT_EQ(copy_of(ticket.wait()), sent);
  }
}

INSTANTIATE_TEST_SUITE_P(Bytes,
                         SizesTest,
                         testing::Values(0,
                                         1,
                                         kInlineReplyBytes - 1,
                                         kInlineReplyBytes,
                                         kInlineReplyBytes + 1,
                                         (64 << 10) - kRequestHeaderBytes,
                                         (64 << 10) - kRequestHeaderBytes + 1,
                                         1 << 20,
                                         33'333'333),
                         testing::PrintToStringParamName());

TEST_F(ConnectionTest, HandlerSeesWhatTheClientSent) {
  RequestTag tag;
  Op op = 0;
  std::string name;
  std::int64_t capacity = 0;
  const auto server = serve([&](std::unique_ptr<ServerCall>& call) {
    tag = call->tag();
    op = call->op();
    name = call->client_name();
    capacity = call->reply_capacity();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(call->payload().data()) % 64, 0U);
    call->reply({});
  });
  Connection connection = connect();
  Bytes room(5);
  connection.call(42, request(1), room, soon(), {{11, 12, -13, 14}, true}).wait();
  EXPECT_EQ(op, 42U);
  EXPECT_EQ(tag.client, 11U);
  EXPECT_EQ(tag.sequence, 12U);
  EXPECT_EQ(tag.step, -13);
  EXPECT_EQ(tag.rank, 14);
  EXPECT_EQ(name, "test");
  EXPECT_EQ(capacity, 5);
}

TEST_F(ConnectionTest, AnswerMayBeShorterThanTheRoomForIt) {
  const auto server = serve(echo);
  Connection connection = connect();
  const Bytes sent = some_bytes(100);
  Bytes room(50'000, std::byte{9});
  EXPECT_EQ(copy_of(connection.call(1, request(sent), room, soon()).wait()), sent);
  EXPECT_EQ(room[100], std::byte{9});
}

TEST_F(ConnectionTest, AnswerLargerThanTheRoomForItIsAnErrorOfThatRequestOnly) {
  const auto server = serve(echo);
  Connection connection = connect();
  for (const std::size_t room : {std::size_t{10}, std::size_t{9000}}) {
    Bytes small(room);
    const Bytes large = some_bytes(room + 1);
    Ticket ticket = connection.call(1, request(large), small, soon());
    EXPECT_EQ(failure_of([&] { ticket.wait(); }), NetFailure::kRemote);
    EXPECT_EQ(failure_of([&] { ticket.wait(); }), NetFailure::kRemote) << "a second wait";
  }
  Bytes one(1);
  EXPECT_EQ(connection.call(1, request(some_bytes(1)), one, soon()).wait().size(), 1U);
}

TEST_F(ConnectionTest, ExceptionOfTheHandlerReachesTheClient) {
  const auto server = serve([](std::unique_ptr<ServerCall>&) {
    throw Error(ErrorCode::kUnavailable, "table 'city' is full");
  });
  Connection connection = connect();
  Ticket ticket = connection.call_for_any_size(1, request(1), soon());
  EXPECT_NE(message_of([&] { ticket.wait(); }).find("table 'city' is full"), std::string::npos);
  EXPECT_TRUE(connection.is_open());
}

TEST_F(ConnectionTest, OutOfMemoryInTheHandlerIsAnErrorOfThatRequestOnly) {
  std::atomic<int> calls{0};
  const auto server = serve([&](std::unique_ptr<ServerCall>& call) {
    if (++calls == 1) throw std::bad_alloc();
    echo(call);
  });
  Connection connection = connect();
  Ticket first = connection.call_for_any_size(1, request(1), soon());
  EXPECT_EQ(failure_of([&] { first.wait(); }), NetFailure::kRemote);
  EXPECT_EQ(connection.call_for_any_size(1, request(1), soon()).wait().size(), 8U);
}

TEST_F(ConnectionTest, LongErrorIsCutAndDroppedRequestIsAnError) {
  const auto server = serve([](std::unique_ptr<ServerCall>& call) {
    if (call->op() == 1) call->fail(std::string(100'000, 'x'));
    call.reset();
  });
  Connection connection = connect();
  EXPECT_GT(message_of([&] { connection.call_for_any_size(1, request(1), soon()).wait(); }).size(),
            4096U);
  EXPECT_NE(message_of([&] {
              connection.call_for_any_size(2, request(1), soon()).wait();
            }).find("dropped"),
            std::string::npos);
}

TEST_F(ConnectionTest, CallsMayBeAnsweredLaterInAnyOrderFromAnyThread) {
  std::mutex mutex;
  std::deque<std::unique_ptr<ServerCall>> kept;
  constexpr int kCalls = 10;
  ServerOptions ten;
  ten.max_in_flight = kCalls;
  const auto server = serve(
      [&](std::unique_ptr<ServerCall>& call) {
        const std::lock_guard lock(mutex);
        kept.push_back(std::move(call));
      },
      ten);
  Connection connection = connect();
  std::vector<Ticket> tickets;
  for (int i = 0; i < kCalls; ++i) {
    tickets.push_back(connection.call_for_any_size(
        1, request(some_bytes(10'000, static_cast<unsigned>(i))), soon()));
  }
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return kept.size() == kCalls;
  }));
  std::thread other([&] {
    while (!kept.empty()) {
      kept.back()->reply(kept.back()->payload());
      kept.pop_back();
    }
  });
  for (int i = 0; i < kCalls; ++i) {
    EXPECT_EQ(copy_of(tickets[static_cast<std::size_t>(i)].wait()),
              some_bytes(10'000, static_cast<unsigned>(i)));
  }
  other.join();
}

TEST_F(ConnectionTest, ManyThreadsShareAConnectionAndManyConnectionsAServer) {
  ServerOptions with_workers;
  with_workers.num_workers = 3;
  with_workers.max_in_flight = 5;
  with_workers.slot_bytes = 8192;
  EndpointOptions two_devices = options();
  two_devices.num_devices = 2;
  two_devices.checksum = true;
  const Endpoint end(two_devices);
  const Server server(server_end_, *store_, "shard", with_workers, echo);
  std::vector<std::thread> threads;
  std::vector<Connection> connections;
  for (int c = 0; c < 3; ++c) connections.emplace_back(end, *store_, "shard", "test", soon());
  std::atomic<int> good{0};
  constexpr int kThreads = 9, kRounds = 60;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Connection& connection = connections[static_cast<std::size_t>(t % 3)];
      for (int i = 0; i < kRounds; ++i) {
        const Bytes sent = some_bytes(static_cast<std::size_t>((t * 7919 + i * 1231) % 20'000),
                                      static_cast<unsigned>(t * 1000 + i));
        Bytes received(sent.size());
        connection.call(1, RequestBuffer(end, {sent}), received, soon()).wait();
        if (received == sent) ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, kThreads * kRounds);
  EXPECT_EQ(server.num_connections(), 3);
}

TEST_F(ConnectionTest, OrderedRequestsAreHandledInTheirOrder) {
  ServerOptions with_workers;
  with_workers.num_workers = 4;
  std::mutex mutex;
  std::vector<std::uint64_t> order;
  const auto server = serve(
      [&](std::unique_ptr<ServerCall>& call) {
        {
          const std::lock_guard lock(mutex);
          order.push_back(call->tag().sequence);
        }
        call->reply({});
      },
      with_workers);
  Connection connection = connect();
  std::deque<Ticket> tickets;
  constexpr std::uint64_t kCalls = 500;
  for (std::uint64_t i = 0; i < kCalls; ++i) {
    if (static_cast<std::int64_t>(tickets.size()) == connection.max_in_flight()) {
      tickets.front().wait();
      tickets.pop_front();
    }
    tickets.push_back(connection.call_for_any_size(1, request(1), soon(), {{1, i, 0, 0}, true}));
  }
  for (Ticket& ticket : tickets) ticket.wait();
  std::vector<std::uint64_t> expected(kCalls);
  std::iota(expected.begin(), expected.end(), 0U);
  EXPECT_EQ(order, expected);
}

TEST_F(ConnectionTest, NoMoreRequestsThanTheServerAllowsAreUnderWay) {
  ServerOptions two;
  two.max_in_flight = 2;
  Gate gate;
  std::atomic<int> at_server{0};
  std::mutex mutex;
  std::vector<std::unique_ptr<ServerCall>> kept;
  const auto server = serve(
      [&](std::unique_ptr<ServerCall>& call) {
        const std::lock_guard lock(mutex);
        ++at_server;
        kept.push_back(std::move(call));
      },
      two);
  Connection connection = connect();
  EXPECT_EQ(connection.max_in_flight(), 2);
  Ticket first = connection.call_for_any_size(1, request(1), soon());
  Ticket second = connection.call_for_any_size(1, request(2), soon());
  EXPECT_EQ(
      failure_of([&] { connection.call_for_any_size(1, request(3), Deadline::after_ms(50)); }),
      NetFailure::kTimeout);
  EXPECT_TRUE(connection.is_open()) << "nothing was sent, so nothing is broken";
  ASSERT_TRUE(eventually([&] { return at_server == 2; }));
  {
    const std::lock_guard lock(mutex);
    for (auto& call : kept) call->reply({});
    kept.clear();
  }
  first.wait();
  Ticket third = connection.call_for_any_size(1, request(3), soon());
  ASSERT_TRUE(eventually([&] { return at_server == 3; }));
  const std::lock_guard lock(mutex);
  kept.clear();
}

TEST_F(ConnectionTest, MissedDeadlineClosesTheConnectionAndFreesTheMemory) {
  std::mutex mutex;
  std::vector<std::unique_ptr<ServerCall>> kept;
  const auto server = serve([&](std::unique_ptr<ServerCall>& call) {
    const std::lock_guard lock(mutex);
    kept.push_back(std::move(call));
  });
  Connection connection = connect();
  auto room = std::make_unique<Bytes>(100'000);
  Ticket other = connection.call_for_any_size(1, request(1), soon());
  Ticket late = connection.call(1, request(1), *room, Deadline::after_ms(50));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(failure_of([&] { late.wait(); }), NetFailure::kTimeout);
  room.reset();  // sanitizers report a write that still arrives
  EXPECT_TRUE(is_lost([&] { other.wait(); }));
  EXPECT_LT(seconds_since(begin), 10.0);
  EXPECT_FALSE(connection.is_open());
  EXPECT_TRUE(is_lost([&] { connection.call_for_any_size(1, request(1), soon()); }));
  ASSERT_TRUE(eventually([&] { return server->num_connections() == 0; }));
  const std::lock_guard lock(mutex);
  for (auto& call : kept) call->reply(some_bytes(100'000));  // to no receiver
}

// Gloo closes every connection of a context when one wait in it times out.
TEST_F(ConnectionTest, MissedDeadlineLeavesOtherConnectionsAlone) {
  Gate gate;
  ServerOptions with_workers;
  with_workers.num_workers = 2;
  const auto server = serve(
      [&](std::unique_ptr<ServerCall>& call) {
        if (call->op() == 2) gate.wait();
        echo(call);
      },
      with_workers);
  Connection late = connect(), other = connect();
  Ticket under_way = other.call_for_any_size(2, request(1), soon());
  Ticket missed = late.call_for_any_size(2, request(1), Deadline::after_ms(30));
  EXPECT_EQ(failure_of([&] { missed.wait(); }), NetFailure::kTimeout);
  gate.open();
  EXPECT_EQ(under_way.wait().size(), 8U);
  EXPECT_EQ(other.call_for_any_size(1, request(1), soon()).wait().size(), 8U);
}

TEST_F(ConnectionTest, TooLargeRequestIsRefusedAndNotSent) {
  ServerOptions small;
  small.max_request_bytes = 1000;
  const auto server = serve(echo, small);
  Connection connection = connect();
  EXPECT_EQ(failure_of([&] { connection.call_for_any_size(1, request(some_bytes(1001)), soon()); }),
            NetFailure::kRefused);
  EXPECT_EQ(connection.call_for_any_size(1, request(some_bytes(1000)), soon()).wait().size(),
            1000U);
}

TEST_F(ConnectionTest, EndOfTheServerEndsAllWaits) {
  std::mutex mutex;
  std::vector<std::unique_ptr<ServerCall>> kept;
  auto server = serve([&](std::unique_ptr<ServerCall>& call) {
    const std::lock_guard lock(mutex);
    kept.push_back(std::move(call));
  });
  Connection connection = connect();
  Bytes room(1 << 20);
  Ticket small = connection.call_for_any_size(1, request(1), soon());
  Ticket large = connection.call(1, request(1), room, soon());
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return kept.size() == 2;
  }));
  server.reset();
  EXPECT_EQ(failure_of([&] { small.wait(); }), NetFailure::kClosed);
  EXPECT_EQ(failure_of([&] { large.wait(); }), NetFailure::kClosed);
  kept.clear();
}

TEST_F(ConnectionTest, ServerNoticesThatAClientHasGone) {
  const auto server = serve(echo);
  {
    Connection connection = connect();
    EXPECT_EQ(server->num_connections(), 1);
  }
  EXPECT_TRUE(eventually([&] { return server->num_connections() == 0; }));
}

TEST_F(ConnectionTest, AHundredGenerationsOfServersAndConnections) {
  for (int generation = 0; generation < 100; ++generation) {
    const auto server = serve(echo);
    Connection connection = connect();
    const Bytes sent = some_bytes(10'000, static_cast<unsigned>(generation));
    ASSERT_EQ(copy_of(connection.call_for_any_size(1, request(sent), soon()).wait()), sent);
  }
}

}  // namespace
}  // namespace satrap::net
