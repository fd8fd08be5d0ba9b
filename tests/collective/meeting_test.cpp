#include "src/collective/meeting.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/collective/communicator.h"
#include "satrap/net/file_store.h"
#include "tests/support/strangers.h"
#include "tests/support/temporary_directory.h"

namespace satrap::collective {
namespace {

net::EndpointOptions with_token() {
  net::EndpointOptions options;
  options.token = "secret";
  return options;
}

// The last rank comes late, so that the others listen for a while.
TEST(Meeting, EveryRankFindsTheOthersAmongStrangersAtEveryPort) {
  constexpr int kRanks = 3, kRounds = 10;
  TemporaryDirectory folder;
  net::FileStore store(folder.path());
  const Strangers strangers;
  for (int round = 0; round < kRounds; ++round) {
    const int before = strangers.num_visits();
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks.emplace_back([&, rank] {
        const auto deadline = net::Deadline::after_ms(20'000);
        try {
          if (rank == kRanks - 1) {
            while (strangers.num_visits() < before + 20 && !deadline.has_passed()) {
              std::this_thread::yield();
            }
          }
          const net::Endpoint endpoint(with_token());
          const auto group = make_gloo_communicator(endpoint, store, std::to_string(round), rank,
                                                    kRanks, deadline);
          std::vector<float> values(1000, static_cast<float>(rank));
          group->all_reduce_sum(values, deadline);
          EXPECT_EQ(values, std::vector<float>(1000, 3.0F));
        } catch (const std::exception& error) {
          ADD_FAILURE() << "round " << round << ", rank " << rank << ": " << error.what();
        }
      });
    }
    for (std::thread& rank : ranks) rank.join();
    ASSERT_FALSE(HasFailure());
  }
}

// What a rank throws that meets others who do not come.
net::NetError lonely(const MeetingPlace& place, net::Deadline deadline) {
  const net::Endpoint endpoint(with_token());
  try {
    meet_ranks(*endpoint.impl(), place, deadline);
  } catch (const net::NetError& error) {
    return error;
  }
  return {net::NetFailure::kRemote, "it met somebody"};
}

TEST(Meeting, ARankThatIsAloneIsStoppedAtOnce) {
  const TemporaryDirectory folder;
  net::FileStore store(folder.path());
  const std::atomic<bool> stop{true};
  const auto deadline = net::Deadline::after_ms(60'000).unless(stop);
  // The first rank waits for others to come; the last one waits for their addresses.
  for (const std::int64_t rank : {0, 2}) {
    const auto begin = net::Deadline::Clock::now();
    EXPECT_EQ(lonely({store, "alone", rank, 3}, deadline).failure(), net::NetFailure::kStopped);
    EXPECT_LT(net::Deadline::Clock::now() - begin, std::chrono::seconds(10));
  }
}

TEST(Meeting, WhoeverDoesNotComeIsNamed) {
  const TemporaryDirectory folder;
  net::FileStore store(folder.path());
  const auto first = lonely({store, "a", 0, 3}, net::Deadline::after_ms(50));
  EXPECT_EQ(first.failure(), net::NetFailure::kTimeout);
  EXPECT_EQ(std::string(first.what()), "rank 1 not reached: it has not come");
  const auto last = lonely({store, "b", 2, 3}, net::Deadline::after_ms(50));
  EXPECT_EQ(last.failure(), net::NetFailure::kTimeout);
  EXPECT_TRUE(std::string(last.what()).starts_with("rank 0 not reached: "));
}

// A process with another token, at the address of a rank or with a rank's address in the store.
TEST(Meeting, AnImpostorIsNotMet) {
  const TemporaryDirectory folder;
  net::FileStore store(folder.path());
  net::EndpointOptions other;
  other.token = "guess";
  const net::Endpoint impostor(other);
  std::thread at_the_door([&] {
    EXPECT_THROW(meet_ranks(*impostor.impl(), {store, "c", 1, 2}, net::Deadline::after_ms(30'000)),
                 net::NetError);
  });
  EXPECT_EQ(lonely({store, "c", 0, 2}, net::Deadline::after_ms(300)).failure(),
            net::NetFailure::kTimeout);
  at_the_door.join();
}

}  // namespace
}  // namespace satrap::collective
