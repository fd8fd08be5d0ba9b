#include "satrap/net/reconnecting_client.h"

#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <thread>

#include "satrap/net/sequence_filter.h"
#include "tests/net/fixture.h"

namespace satrap::net {
namespace {

// A server that adds numbers to a sum, each request once, and can lose answers on purpose.
class Adder {
 public:
  void handle(std::unique_ptr<ServerCall>& call) {
    std::int64_t number = 0;
    std::memcpy(&number, call->payload().data(), sizeof(number));
    if (filter_.begin(call->tag(), soon())) {
      {
        const std::lock_guard lock(mutex_);
        sum_ += number;
        order_.push_back(call->tag().sequence);
      }
      filter_.finish(call->tag());
    } else {
      ++num_repeated;
    }
    if (--answers_left != 0) {
      const Bytes answer = some_bytes(10'000, static_cast<unsigned>(number));
      call->reply(answer);
    }
  }
  std::int64_t sum() {
    const std::lock_guard lock(mutex_);
    return sum_;
  }
  std::vector<std::uint64_t> order() {
    const std::lock_guard lock(mutex_);
    return order_;
  }
  std::atomic<std::int64_t> num_repeated{0};
  std::atomic<std::int64_t> answers_left{-1};  // the answer that would make it 0 is lost

 private:
  SequenceFilter filter_;
  std::mutex mutex_;
  std::int64_t sum_ = 0;
  std::vector<std::uint64_t> order_;
};

class ReconnectTest : public NetTest {
 protected:
  std::unique_ptr<Server> start() {
    return serve([this](std::unique_ptr<ServerCall>& call) { adder_.handle(call); });
  }
  std::unique_ptr<ReconnectingClient> client(std::int64_t attempt_ms = 10'000) {
    return std::make_unique<ReconnectingClient>(client_end_, store_, "shard", "rank-0", 0,
                                                attempt_ms);
  }
  Adder adder_;
};

TEST_F(ReconnectTest, AnswersSurviveTheServersEnd) {
  auto server = start();
  const auto client = this->client();
  EXPECT_EQ(copy_of(client->call_for_any_size(1, 0, request(3), soon())->wait()),
            some_bytes(10'000, 3));
  server.reset();
  server = start();
  Bytes room(10'000);
  client->call(1, 0, request(4), room, soon())->wait();
  EXPECT_EQ(room, some_bytes(10'000, 4));
  EXPECT_EQ(adder_.sum(), 7);
  EXPECT_EQ(client->num_reconnects(), 1);
}

TEST_F(ReconnectTest, LostAnswerIsAskedForAgainAndAppliedOnce) {
  const auto server = start();
  const auto client = this->client(100);
  adder_.answers_left = 1;
  // The server drops this call. Without any answer the client would get an error, so the connection
  // is closed instead.
  auto pending = client->call_for_any_size(1, 0, request(5), soon());
  ASSERT_TRUE(eventually([&] { return adder_.sum() == 5; }));
  client->close_connection();
  try {
    pending->wait();
  } catch (const NetError& error) {
    EXPECT_EQ(error.failure(), NetFailure::kRemote);  // the "dropped" arrived first
    return;
  }
  EXPECT_EQ(adder_.sum(), 5);
  EXPECT_EQ(adder_.num_repeated, 1);
}

TEST_F(ReconnectTest, RepeatedRequestsComeInTheirOrderWithTheirNumbers) {
  const auto server = start();
  const auto client = this->client();
  client->call_for_any_size(1, 0, request(1), soon())->wait();
  client->close_connection();
  std::vector<std::unique_ptr<ReconnectingClient::Pending>> pending;
  for (int i = 2; i <= 6; ++i) {
    pending.push_back(client->call_for_any_size(1, 0, request(i), soon(), true));
  }
  pending.back()->wait();  // the last first
  for (std::size_t i = 0; i + 1 < pending.size(); ++i) pending[i]->wait();
  EXPECT_EQ(adder_.order(), (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(adder_.sum(), 21);
}

TEST_F(ReconnectTest, NoUpdateIsLostOrDoubledWhileConnectionsBreakAtRandom) {
  auto server = start();
  const auto client = this->client();
  constexpr int kThreads = 3, kCalls = 150;
  std::atomic<bool> is_over{false};
  std::thread breaker([&] {
    std::mt19937 random(3);
    while (!is_over) {
      client->close_connection();
      if (random() % 4 == 0) {
        server.reset();
        server = start();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 30));
    }
  });
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::deque<std::pair<int, std::unique_ptr<ReconnectingClient::Pending>>> pending;
      const auto finish = [&] {
        const auto reply = pending.front().second->wait();
        if (copy_of(reply) == some_bytes(10'000, static_cast<unsigned>(pending.front().first)))
          ++good;
        pending.pop_front();
      };
      for (int i = 0; i < kCalls; ++i) {
        const int number = t * kCalls + i + 1;
        if (pending.size() == 2) finish();
        pending.emplace_back(number, client->call_for_any_size(1, i, request(number), soon()));
      }
      while (!pending.empty()) finish();
    });
  }
  for (std::thread& thread : threads) thread.join();
  is_over = true;
  breaker.join();
  constexpr std::int64_t kAll = kThreads * kCalls;
  EXPECT_EQ(good, kAll);
  EXPECT_EQ(adder_.sum(), kAll * (kAll + 1) / 2);
  EXPECT_GT(client->num_reconnects(), 0);
}

TEST_F(ReconnectTest, TooLargeRequestIsRefusedAndTheNextOneIsAnswered) {
  ServerOptions small;
  small.max_request_bytes = 1000;
  const auto server = serve(echo, small);
  const auto client = this->client();
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(failure_of([&] {
                client->call_for_any_size(1, 0, request(some_bytes(1001)), soon())->wait();
              }),
              NetFailure::kRefused);
    EXPECT_EQ(client->call_for_any_size(1, 0, request(some_bytes(1000)), soon())->wait().size(),
              1000U);
  }
  EXPECT_EQ(client->num_reconnects(), 0);
}

TEST_F(ReconnectTest, RequestTooLargeForTheNextServerIsRefusedAndTheOthersAreAnswered) {
  std::mutex mutex;
  std::vector<std::unique_ptr<ServerCall>> kept;
  auto server = serve([&](std::unique_ptr<ServerCall>& call) {
    const std::lock_guard lock(mutex);
    kept.push_back(std::move(call));
  });
  const auto client = this->client();
  const auto large = client->call_for_any_size(1, 0, request(some_bytes(1001)), soon());
  const auto little = client->call_for_any_size(1, 0, request(some_bytes(1000)), soon());
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return kept.size() == 2;
  }));
  server.reset();
  ServerOptions small;
  small.max_request_bytes = 1000;
  server = serve(echo, small);
  EXPECT_EQ(failure_of([&] { large->wait(); }), NetFailure::kRefused);
  EXPECT_EQ(little->wait().size(), 1000U);
  EXPECT_EQ(client->num_reconnects(), 1);
}

TEST_F(ReconnectTest, NobodyThereEndsAtTheDeadlineOfTheCall) {
  auto server = start();
  const auto client = this->client();
  client->call_for_any_size(1, 0, request(1), soon())->wait();
  server.reset();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(failure_of([&] {
              client->call_for_any_size(1, 0, request(2), Deadline::after_ms(100))->wait();
            }),
            NetFailure::kTimeout);
  EXPECT_LT(seconds_since(begin), 20.0);
}

TEST_F(ReconnectTest, ErrorsOfTheHandlerAreNotRepeated) {
  std::atomic<int> calls{0};
  const auto server = serve([&](std::unique_ptr<ServerCall>& call) {
    ++calls;
    call->fail("no");
  });
  const auto client = this->client();
  auto pending = client->call_for_any_size(1, 0, request(2), soon());
  EXPECT_EQ(failure_of([&] { pending->wait(); }), NetFailure::kRemote);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(client->num_reconnects(), 0);
}

TEST_F(ReconnectTest, EndOfTheClientEndsWhatIsUnderWay) {
  std::mutex mutex;
  std::vector<std::unique_ptr<ServerCall>> kept;
  const auto server = serve([&](std::unique_ptr<ServerCall>& call) {
    const std::lock_guard lock(mutex);
    kept.push_back(std::move(call));
  });
  auto client = this->client();
  Bytes room(10'000);
  auto pending = client->call(1, 0, request(1), room, soon());
  client.reset();
  testing::internal::CaptureStderr();
  EXPECT_EQ(failure_of([&] { pending->wait(); }), NetFailure::kClosed);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "it was not lost";
  const std::lock_guard lock(mutex);
  kept.clear();
}

}  // namespace
}  // namespace satrap::net
