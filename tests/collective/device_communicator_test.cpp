// The contract of DeviceCommunicator: over Gloo between hosts, over NCCL between GPUs, and over its
// stand-in on the executor.
#include "satrap/collective/device_communicator.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/backend/memory.h"
#include "satrap/backend/stream.h"
#include "satrap/core/error.h"
#include "satrap/net/file_rendezvous.h"
#include "tests/support/ranks/ranks.h"
#include "tests/support/temporary_directory.h"

namespace satrap::collective {
namespace {

constexpr std::int64_t kLong = 60'000;  // ms

/// A rank of a test, on a thread of its own.
struct TestRank {
  std::int64_t rank, size;
  backend::Device& device;
  const backend::Stream& stream;
  DeviceCommunicator& group;
  Communicator& hosts;

  /// Values in the device's memory, for this rank's operations.
  class Array {
   public:
    Array(TestRank& rank, const std::vector<float>& values)
        : rank_(rank),
          count_(values.size()),
          memory_(rank.device,
                  backend::Place::kDevice,
                  static_cast<std::int64_t>(std::max<std::size_t>(1, count_) * sizeof(float)),
                  "a test's array") {
      rank.device.copy(memory_.data(), values.data(), bytes(), rank.stream);
      rank.stream.wait_until_idle();  // `values` may be gone
    }
    float* data() const { return reinterpret_cast<float*>(memory_.data()); }
    std::vector<float> host() const {
      std::vector<float> values(count_);
      rank_.device.copy(values.data(), memory_.data(), bytes(), rank_.stream);
      rank_.stream.wait_until_idle();
      return values;
    }

   private:
    std::int64_t bytes() const { return static_cast<std::int64_t>(count_ * sizeof(float)); }
    TestRank& rank_;
    std::size_t count_;
    backend::Memory memory_;
  };
};

class DeviceCommunicatorTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = why_no_ranks();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  /// Numbers of ranks to try.
  static std::vector<std::int64_t> sizes() {
    std::vector<std::int64_t> sizes;
    for (const std::int64_t size : {1, 2, 3, 4}) {
      if (size <= max_ranks()) sizes.push_back(size);
    }
    return sizes;
  }

  void run(std::int64_t size,
           DeviceCommunicator::Options options,
           const std::function<void(TestRank&)>& body) {
    const std::string name = std::to_string(num_groups_++);
    std::vector<std::thread> threads;
    for (std::int64_t rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          const net::Endpoint endpoint{net::EndpointOptions{}};
          const auto hosts = connect(endpoint, name + "-hosts", rank, size);
          const auto device = make_rank_device(rank);
          const backend::Stream stream(*device);
          std::string reason;
          const auto group =
              connect_rank_devices(connect(endpoint, name, rank, size), *device, options, reason);
          ASSERT_NE(group, nullptr) << reason;
          TestRank test{rank, size, *device, stream, *group, *hosts};
          body(test);
        } catch (const std::exception& error) {
          ADD_FAILURE() << "rank " << rank << ": " << error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  void run_schedules(std::int64_t size,
                     DeviceCommunicator::Options options,
                     const std::function<void(TestRank&)>& body) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      SCOPED_TRACE(testing::Message() << size << " ranks, schedule " << seed);
      set_schedule(seed);
      run(size, options, body);
    }
    set_schedule(0);
  }

  std::unique_ptr<Communicator> connect(const net::Endpoint& endpoint,
                                        const std::string& name,
                                        std::int64_t rank,
                                        std::int64_t size) {
    if (size == 1) return make_single_communicator();
    return make_gloo_communicator(endpoint, store_, name, rank, size,
                                  net::Deadline::after_ms(kLong));
  }

  TemporaryDirectory folder_;
  net::FileRendezvous store_{folder_.path()};
  int num_groups_ = 0;
};

std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> values(-1.0F, 1.0F);
  std::vector<float> made(count);
  for (float& value : made) value = values(random);
  return made;
}

TEST_F(DeviceCommunicatorTest, SumsInOrderHaveTheBitsOfTheHosts) {
  for (const std::int64_t size : sizes()) {
    run_schedules(size, {.timeout_ms = kLong}, [](TestRank& rank) {
      for (const std::size_t count : {0U, 1U, 2U, 3U, 5U, 7U, 1000U}) {
        std::vector<float> values =
            random_values(count, count + 100 * static_cast<std::uint64_t>(rank.rank));
        const TestRank::Array array(rank, values);
        rank.group.all_reduce_sum(array.data(), static_cast<std::int64_t>(count), rank.stream);
        rank.hosts.all_reduce_sum(values, net::Deadline::after_ms(kLong));
        ASSERT_EQ(array.host(), values) << count << " values";
      }
      rank.group.throw_if_failed();
    });
  }
}

TEST_F(DeviceCommunicatorTest, OtherSumsAreTheSameOnAllRanks) {
  for (const std::int64_t size : sizes()) {
    run_schedules(size, {.timeout_ms = kLong, .in_order = false}, [](TestRank& rank) {
      std::vector<float> values = random_values(333, static_cast<std::uint64_t>(rank.rank));
      const TestRank::Array array(rank, values);
      rank.group.all_reduce_sum(array.data(), std::ssize(values), rank.stream);
      const std::vector<float> sum = array.host();
      rank.hosts.all_reduce_sum(values, net::Deadline::after_ms(kLong));
      ASSERT_THAT(sum, testing::Pointwise(testing::FloatNear(1e-5F), values));
      std::vector<float> of_chief = sum;
      rank.hosts.broadcast(std::as_writable_bytes(std::span(of_chief)), 0,
                           net::Deadline::after_ms(kLong));
      ASSERT_EQ(sum, of_chief);
    });
  }
}

/// How many values rank `from` sends to rank `to` in a round; all of a pair or none sometimes.
std::int64_t count_of(std::int64_t round, std::int64_t from, std::int64_t to) {
  if (round == 0) return 0;
  return (round * 7 + from * 3 + to * 5) % 6 * (from == to && round % 2 == 0 ? 0 : round);
}

TEST_F(DeviceCommunicatorTest, EveryRankGetsWhatTheOthersSendIt) {
  for (const std::int64_t size : sizes()) {
    run_schedules(size, {.timeout_ms = kLong}, [](TestRank& rank) {
      for (std::int64_t round = 0; round < 6; ++round) {
        std::vector<std::int64_t> to_counts, from_counts;
        std::vector<float> sent, expected;
        for (std::int64_t other = 0; other < rank.size; ++other) {
          to_counts.push_back(count_of(round, rank.rank, other));
          from_counts.push_back(count_of(round, other, rank.rank));
          const auto value_of = [&](std::int64_t from, std::int64_t to, std::int64_t i) {
            return static_cast<float>(((round * 10 + from) * 10 + to) * 100 + i);
          };
          for (std::int64_t i = 0; i < to_counts.back(); ++i) {
            sent.push_back(value_of(rank.rank, other, i));
          }
          for (std::int64_t i = 0; i < from_counts.back(); ++i) {
            expected.push_back(value_of(other, rank.rank, i));
          }
        }
        const TestRank::Array to(rank, sent);
        const TestRank::Array from(rank, std::vector<float>(expected.size(), -1.0F));
        rank.group.all_to_all(to.data(), to_counts, from.data(), from_counts, rank.stream);
        ASSERT_EQ(from.host(), expected) << "round " << round;
        ASSERT_EQ(to.host(), sent) << "round " << round;
      }
      rank.group.throw_if_failed();
    });
  }
}

TEST_F(DeviceCommunicatorTest, OperationsTakeTheirPlaceInTheStream) {
  for (const std::int64_t size : sizes()) {
    run_schedules(size, {.timeout_ms = kLong}, [](TestRank& rank) {
      // What the last operation gave is doubled on the device before the next one sends it.
      const TestRank::Array values(rank, {1.0F, 2.0F, 3.0F});
      const std::vector<std::int64_t> ones(static_cast<std::size_t>(rank.size), 1);
      const TestRank::Array all(rank, std::vector<float>(ones.size(), 0.0F));
      const TestRank::Array received(rank, std::vector<float>(ones.size(), 0.0F));
      float expected = 1.0F;
      for (int i = 0; i < 5; ++i) {
        rank.group.all_reduce_sum(values.data(), 3, rank.stream);
        const std::vector<const float*> twice = {values.data(), values.data()};
        rank.device.add_in_order({twice, 3, values.data()}, rank.stream);
        for (std::int64_t r = 0; r < rank.size; ++r) {
          rank.device.copy(all.data() + r, values.data(), sizeof(float), rank.stream);
        }
        rank.group.all_to_all(all.data(), ones, received.data(), ones, rank.stream);
        expected *= 2.0F * static_cast<float>(rank.size);
      }
      EXPECT_EQ(values.host(), (std::vector<float>{expected, 2 * expected, 3 * expected}));
      EXPECT_THAT(received.host(), testing::Each(expected));
      rank.group.throw_if_failed();
    });
  }
}

TEST(Nccl, IsFoundByABuildThatNeedsIt) {
  if (backend::why_no_cuda().starts_with("this build has no CUDA")) {
    EXPECT_THROW(describe_nccl(), Error);
  } else {  // needs no driver
    EXPECT_THAT(describe_nccl(), testing::StartsWith("2."));
  }
}

// -------------------------------------------------------------------------------------- failures

/// How a rank's operation failed: at once, or once its stream has come to an end.
std::optional<net::NetFailure> failure_of(TestRank& rank, const std::function<void()>& queue) {
  try {
    queue();
    rank.stream.wait_until_idle();
    rank.group.throw_if_failed();
  } catch (const net::NetError& error) {
    EXPECT_NE(std::string(error.what()), "");
    return error.failure();
  }
  return std::nullopt;
}

TEST_F(DeviceCommunicatorTest, ARankThatDoesNotComeEndsTheOthersAtTheDeadline) {
  if (max_ranks() < 3) GTEST_SKIP() << "needs three devices";
  for (const bool in_order : {false, true}) {
    const auto start = std::chrono::steady_clock::now();
    std::atomic<int> num_timeouts = 0;
    run(3, {.timeout_ms = 500, .in_order = in_order}, [&](TestRank& rank) {
      const TestRank::Array values(rank, {1.0F, 2.0F, 3.0F, 4.0F});
      if (rank.rank != 1) {
        const auto sum = [&] { rank.group.all_reduce_sum(values.data(), 4, rank.stream); };
        const std::optional<net::NetFailure> failure = failure_of(rank, sum);
        EXPECT_THAT(failure, testing::AnyOf(testing::Eq(net::NetFailure::kTimeout),
                                            testing::Eq(net::NetFailure::kClosed)));
        num_timeouts += failure == net::NetFailure::kTimeout ? 1 : 0;
        // It stays unusable, and says so at once.
        EXPECT_NE(failure_of(rank, sum), std::nullopt);
      }
      rank.hosts.barrier(net::Deadline::after_ms(kLong));
    });
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));
    EXPECT_GE(num_timeouts, 1);  // which may end the others
  }
}

TEST_F(DeviceCommunicatorTest, ClosingItEndsWhatIsUnderWay) {
  if (max_ranks() < 2) GTEST_SKIP() << "needs two devices";
  run(2, {.timeout_ms = kLong}, [](TestRank& rank) {
    const TestRank::Array values(rank, {1.0F, 2.0F});
    if (rank.rank == 0) {
      std::thread closer([&] {
        rank.hosts.barrier(net::Deadline::after_ms(kLong));
        rank.group.close();
      });
      const auto exchange = [&] {
        const std::vector<std::int64_t> counts = {0, 2};
        const TestRank::Array received(rank, {0.0F, 0.0F});
        rank.group.all_to_all(values.data(), counts, received.data(), counts, rank.stream);
        rank.stream.wait_until_idle();
        rank.group.throw_if_failed();
      };
      EXPECT_EQ(failure_of(rank, exchange), net::NetFailure::kClosed);
      closer.join();
      EXPECT_EQ(failure_of(rank, exchange), net::NetFailure::kClosed);
    } else {
      rank.hosts.barrier(net::Deadline::after_ms(kLong));
      rank.group.close();
    }
  });
}

}  // namespace
}  // namespace satrap::collective
