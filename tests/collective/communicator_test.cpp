#include "satrap/collective/communicator.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "satrap/net/file_rendezvous.h"
#include "tests/support/peer_process.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_directory.h"

namespace satrap::collective {
namespace {

using net::Deadline;
using net::NetError;
using net::NetFailure;

Deadline soon() { return Deadline::after_ms(60'000); }

std::optional<NetFailure> failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const NetError& error) {
    return error.failure();
  }
  return std::nullopt;
}

// Runs `body` on every rank of a group, each in its own thread with its own endpoint.
class GroupTest : public testing::TestWithParam<int> {
 protected:
  void run(int size, const std::function<void(Communicator&)>& body) {
    const std::string name = std::to_string(num_groups_++);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          const net::Endpoint endpoint{net::EndpointOptions{}};
          const auto communicator =
              size == 1 ? make_single_communicator()
                        : make_gloo_communicator(endpoint, store_, name, rank, size, soon());
          body(*communicator);
        } catch (const std::exception& error) {
          ADD_FAILURE() << "rank " << rank << ": " << error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  TemporaryDirectory folder_;
  net::FileRendezvous store_{folder_.path()};
  int num_groups_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Ranks,
                         GroupTest,
                         testing::Values(1, 2, 3, 5),
                         testing::PrintToStringParamName());

TEST_P(GroupTest, SumOfSmallNumbersIsRightForEveryLength) {
  const int size = GetParam();
  run(size, [&](Communicator& group) {
    EXPECT_EQ(group.size(), size);
    for (const std::size_t length : {0U, 1U, 2U, 3U, 4U, 7U, 1000U}) {
      std::vector<float> values(length);
      std::vector<double> doubles(length);
      for (std::size_t i = 0; i < length; ++i) {
        values[i] = static_cast<float>(i + 1) * static_cast<float>(group.rank() + 1);
        doubles[i] = values[i];
      }
      group.all_reduce_sum(values, soon());
      group.all_reduce_sum(doubles, soon());
      const int sum = size * (size + 1) / 2;
      const auto ranks = static_cast<float>(sum);
      for (std::size_t i = 0; i < length; ++i) {
        ASSERT_EQ(values[i], static_cast<float>(i + 1) * ranks);
        ASSERT_EQ(doubles[i], values[i]);
      }
    }
  });
}

TEST_P(GroupTest, SumHasTheBitsOfAddingInTheOrderOfTheRanks) {
  const int size = GetParam();
  constexpr std::size_t kLength = 100'003;
  std::vector<std::vector<float>> inputs(static_cast<std::size_t>(size));
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0.0F, 1.0F);
  for (auto& input : inputs) {
    for (std::size_t i = 0; i < kLength; ++i)
      input.push_back(std::exp(8 * normal(random)) * normal(random));
  }
  std::vector<float> expected = inputs[0];
  for (std::size_t r = 1; r < inputs.size(); ++r) {
    for (std::size_t i = 0; i < kLength; ++i) expected[i] += inputs[r][i];
  }
  std::atomic<int> equal{0};
  run(size, [&](Communicator& group) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::vector<float> values = inputs[static_cast<std::size_t>(group.rank())];
      group.all_reduce_sum(values, soon());
      const auto has_bits_of = [](float a, float b) {
        return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
      };
      if (std::equal(values.begin(), values.end(), expected.begin(), has_bits_of)) ++equal;
    }
  });
  EXPECT_EQ(equal, 3 * size);
}

TEST_P(GroupTest, SeveralSumsMayBeUnderWayWithOtherCallsBetween) {
  const int size = GetParam();
  constexpr std::size_t kMany = 20;
  run(size, [&](Communicator& group) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::vector<std::vector<float>> values;
      std::vector<std::unique_ptr<Communicator::Reduction>> sums;
      for (std::size_t i = 0; i < kMany; ++i) {
        values.emplace_back(1000 * i + 3, static_cast<float>((group.rank() + 1) * (repeat + 1)));
        sums.push_back(group.begin_all_reduce_sum(values.back()));
        if (i % 7 == 3) group.barrier(soon());
        if (i >= 5) sums[i - 5]->add(soon());  // while five more are under way
      }
      for (std::size_t i = kMany - 5; i < kMany; ++i) sums[i]->add(soon());
      for (const auto& sum : sums) sum->finish(soon());
      const int expected = (size == 1 ? 1 : size * (size + 1) / 2) * (repeat + 1);
      for (std::size_t i = 0; i < kMany; ++i) {
        EXPECT_EQ(values[i], std::vector<float>(1000 * i + 3, static_cast<float>(expected))) << i;
      }
    }
  });
}

TEST_P(GroupTest, BroadcastComesFromAnyRoot) {
  const int size = GetParam();
  run(size, [&](Communicator& group) {
    for (int root = 0; root < size; ++root) {
      std::vector<std::byte> bytes(1000, static_cast<std::byte>(group.rank() + 1));
      group.broadcast(bytes, root, soon());
      EXPECT_EQ(bytes, std::vector<std::byte>(1000, static_cast<std::byte>(root + 1)));
      group.broadcast({}, root, soon());
    }
    EXPECT_THROW(group.broadcast({}, size, soon()), Error);
  });
}

/// The data that rank `from` sends to rank `to` in a round: between 0 and some thousand bytes.
std::vector<std::byte> part_of(std::int64_t from, std::int64_t to, std::int64_t round) {
  const auto size = static_cast<std::size_t>((from * 7 + to * 3 + round) % 4 * (1 + round * 977));
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(from * 31 + to * 17 + static_cast<std::int64_t>(i));
  }
  return bytes;
}

TEST_P(GroupTest, PartsOfAnySizeGoFromAllToAll) {
  run(GetParam(), [&](Communicator& group) {
    for (std::int64_t round = 0; round < 9; ++round) {
      std::vector<std::vector<std::byte>> mine, theirs, expected;
      std::vector<std::span<const std::byte>> to;
      std::vector<std::span<std::byte>> from;
      for (std::int64_t r = 0; r < group.size(); ++r) {
        mine.push_back(part_of(group.rank(), r, round));
        expected.push_back(part_of(r, group.rank(), round));
        theirs.emplace_back(expected.back().size());
      }
      for (const auto& part : mine) to.emplace_back(part);
      for (auto& part : theirs) from.emplace_back(part);
      group.all_to_all(to, from, soon());
      EXPECT_EQ(theirs, expected);
    }
  });
}

TEST_P(GroupTest, WhatEveryRankHasIsGathered) {
  run(GetParam(), [&](Communicator& group) {
    for (std::int64_t round = 0; round < 5; ++round) {
      const std::array<std::int64_t, 2> mine = {group.rank(), (std::int64_t{1} << 60) + round};
      std::vector<std::int64_t> all(2 * static_cast<std::size_t>(group.size())), expected;
      group.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                       soon());
      for (std::int64_t r = 0; r < group.size(); ++r) {
        expected.insert(expected.end(), {r, (std::int64_t{1} << 60) + round});
      }
      EXPECT_EQ(all, expected);
      group.all_gather({}, {}, soon());
    }
  });
}

TEST_P(GroupTest, NobodyLeavesABarrierBeforeAllHaveCome) {
  const int size = GetParam();
  std::atomic<int> arrived{0};
  run(size, [&](Communicator& group) {
    for (int round = 1; round <= 20; ++round) {
      ++arrived;
      group.barrier(soon());
      EXPECT_GE(arrived, round * size);
      group.barrier(soon());
    }
  });
}

using FaultTest = GroupTest;

TEST_F(FaultTest, RankThatLeavesEndsTheWaitsOfAll) {
  std::atomic<int> closed{0};
  run(3, [&](Communicator& group) {
    group.barrier(soon());
    if (group.rank() == 1) return;
    std::vector<float> values(1000);
    if (failure_of([&] { group.all_reduce_sum(values, soon()); }) == NetFailure::kClosed) ++closed;
    if (failure_of([&] { group.barrier(soon()); }) == NetFailure::kClosed) ++closed;
  });
  EXPECT_EQ(closed, 4);
}

TEST_F(FaultTest, SumThatIsGivenUpEndsTheWaitsOfAll) {
  run(3, [&](Communicator& group) {
    std::vector<float> values(100'000);
    auto sum = group.begin_all_reduce_sum(values);
    if (group.rank() == 2) {
      sum->add(soon());
      sum.reset();
      EXPECT_NE(failure_of([&] { group.barrier(soon()); }), std::nullopt);
      return;
    }
    EXPECT_EQ(failure_of([&] {
                sum->add(soon());
                sum->finish(soon());
                group.barrier(soon());
              }),
              NetFailure::kClosed);
  });
}

TEST_F(FaultTest, RankThatDoesNotComeEndsTheWaitAtTheDeadlineAndIsNamed) {
  std::string message;
  std::atomic<bool> is_over{false};
  run(2, [&](Communicator& group) {
    if (group.rank() == 1) {
      while (!is_over) std::this_thread::yield();
      return;
    }
    try {
      group.barrier(Deadline::after_ms(50));
    } catch (const NetError& error) {
      EXPECT_EQ(error.failure(), NetFailure::kTimeout);
      message = error.what();
    }
    is_over = true;
  });
  EXPECT_THAT(message, testing::StartsWith("nothing received from rank 1 in time: "));
}

TEST_F(FaultTest, DifferentSizesAreAnErrorOnBothSides) {
  std::atomic<int> failed{0};
  run(2, [&](Communicator& group) {
    std::vector<float> values(group.rank() == 0 ? 100 : 200);
    if (failure_of([&] { group.all_reduce_sum(values, Deadline::after_ms(2000)); })) ++failed;
  });
  EXPECT_EQ(failed, 2);
}

// Gloo does not tell a receiver that less arrived than it waits for.
TEST_F(FaultTest, BroadcastOfAnotherSizeIsAnErrorForTheReceiver) {
  for (const std::size_t root_bytes : {50U, 150U}) {
    std::atomic<int> failed{0};
    run(2, [&](Communicator& group) {
      std::vector<std::byte> bytes(group.rank() == 0 ? root_bytes : 100);
      const auto failure = failure_of([&] { group.broadcast(bytes, 0, soon()); });
      if (group.rank() == 1 && failure) ++failed;
    });
    EXPECT_EQ(failed, 1) << root_bytes;
  }
}

TEST_F(FaultTest, PartsOfAnotherSizeThanExpectedAreAnErrorForTheReceiver) {
  for (const std::size_t sent : {0U, 50U, 150U}) {
    std::atomic<int> failed{0};
    run(2, [&](Communicator& group) {
      const auto me = static_cast<std::size_t>(group.rank());
      std::vector<std::byte> mine(sent), theirs(100);
      std::vector<std::span<const std::byte>> to(2);
      std::vector<std::span<std::byte>> from(2);
      if (me == 0) to[1] = mine;
      if (me == 1) from[0] = theirs;
      const auto failure = failure_of([&] { group.all_to_all(to, from, soon()); });
      if (me == 1 && failure) ++failed;
    });
    EXPECT_EQ(failed, 1) << sent;
  }
}

// A rank that has finished must not break a call that another one is still in: here one of the two
// receivers of a large message has it before the other.
TEST_F(FaultTest, RankThatEndsFirstCutsNobodysLastCallShort) {
  constexpr std::size_t kBytes = kSanitized ? 8 << 20 : 32 << 20;
  std::atomic<int> whole{0};
  constexpr int kRounds = 5;
  for (int round = 0; round < kRounds; ++round) {
    run(3, [&](Communicator& group) {
      std::vector<std::byte> bytes(kBytes, static_cast<std::byte>(group.rank() + 1));
      group.broadcast(bytes, 0, soon());
      if (static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), std::byte{1})) == kBytes)
        ++whole;
    });
  }
  EXPECT_EQ(whole, 3 * kRounds);
}

TEST_F(FaultTest, CloseFromAnotherThreadEndsTheCallOfEveryRank) {
  std::atomic<int> closed{0}, waiting{0};
  run(2, [&](Communicator& group) {
    std::thread closer([&] {
      while (waiting < 2) std::this_thread::yield();
      if (group.rank() == 0) group.close();
    });
    ++waiting;
    std::byte byte{};
    // Each waits for the other to send.
    const auto wait = [&] { group.broadcast({&byte, 1}, 1 - group.rank(), soon()); };
    if (failure_of(wait) == NetFailure::kClosed) ++closed;
    if (failure_of(wait) == NetFailure::kClosed) ++closed;
    closer.join();
  });
  EXPECT_EQ(closed, 4);
}

TEST_F(FaultTest, MissingRankAtTheMeetingEndsAtTheDeadline) {
  const net::Endpoint endpoint{net::EndpointOptions{}};
  EXPECT_EQ(failure_of([&] {
              make_gloo_communicator(endpoint, store_, "half", 0, 2, Deadline::after_ms(50));
            }),
            NetFailure::kTimeout);
  EXPECT_EQ(failure_of([&] { make_gloo_communicator(endpoint, store_, "half", 0, 2, soon()); }),
            NetFailure::kRefused)
      << "a name is used once";
}

// Another process as rank 1 of 2: joins one barrier and then no further call.
void run_rank(const std::string& folder) {
  net::FileRendezvous store(folder);
  const net::Endpoint endpoint{net::EndpointOptions{}};
  const auto group = make_gloo_communicator(endpoint, store, "pair", 1, 2, soon());
  group->barrier(soon());
  store.wait("end", soon());
}
const PeerRole kRank("rank", run_rank);

TEST_F(FaultTest, KilledRankEndsTheWaitOfTheOtherLongBeforeTheDeadline) {
  PeerProcess other("rank", folder_.path());
  const net::Endpoint endpoint{net::EndpointOptions{}};
  const auto group = make_gloo_communicator(endpoint, store_, "pair", 0, 2, soon());
  group->barrier(soon());
  std::vector<float> values(1 << 20);
  std::optional<NetFailure> failure;
  std::thread waiting(
      [&] { failure = failure_of([&] { group->all_reduce_sum(values, soon()); }); });
  other.send(SIGKILL);
  const auto begin = std::chrono::steady_clock::now();
  waiting.join();
  EXPECT_EQ(failure, NetFailure::kClosed);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace satrap::collective
