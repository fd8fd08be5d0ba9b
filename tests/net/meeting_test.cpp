#include "src/net/meeting.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/net/file_rendezvous.h"
#include "tests/support/strangers.h"
#include "tests/support/temporary_directory.h"

namespace satrap::net {
namespace {

EndpointOptions with_token() {
  EndpointOptions options;
  options.token = "secret";
  return options;
}

// The last rank comes late, so that the others listen for a while.
TEST(Meeting, EveryRankFindsTheOthersAmongStrangersAtEveryPort) {
  constexpr int kRanks = 3, kRounds = 10;
  TemporaryDirectory folder;
  FileRendezvous store(folder.path());
  const Strangers strangers;
  for (int round = 0; round < kRounds; ++round) {
    const int before = strangers.num_visits();
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks.emplace_back([&, rank] {
        const auto deadline = Deadline::after_ms(20'000);
        try {
          if (rank == kRanks - 1) {
            while (strangers.num_visits() < before + 20 && !deadline.has_passed()) {
              std::this_thread::yield();
            }
          }
          const Endpoint endpoint(with_token());
          const auto sockets =
              meet_ranks(*endpoint.impl(), {store, std::to_string(round), rank, kRanks}, deadline);
          for (int peer = 0; peer < kRanks; ++peer) {
            EXPECT_EQ(sockets.contains(peer), peer != rank) << peer;
          }
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
NetError lonely(const MeetingPlace& place, Deadline deadline) {
  const Endpoint endpoint(with_token());
  try {
    meet_ranks(*endpoint.impl(), place, deadline);
  } catch (const NetError& error) {
    return error;
  }
  return {NetFailure::kRemote, "it met somebody"};
}

TEST(Meeting, ARankThatIsAloneIsStoppedAtOnce) {
  const TemporaryDirectory folder;
  FileRendezvous store(folder.path());
  const std::atomic<bool> stop{true};
  const auto deadline = Deadline::after_ms(60'000).unless(stop);
  // The first rank waits for others to come; the last one waits for their addresses.
  for (const std::int64_t rank : {0, 2}) {
    const auto begin = Deadline::Clock::now();
    EXPECT_EQ(lonely({store, "alone", rank, 3}, deadline).failure(), NetFailure::kStopped);
    EXPECT_LT(Deadline::Clock::now() - begin, std::chrono::seconds(10));
  }
}

TEST(Meeting, WhoeverDoesNotComeIsNamed) {
  const TemporaryDirectory folder;
  FileRendezvous store(folder.path());
  const auto first = lonely({store, "a", 0, 3}, Deadline::after_ms(50));
  EXPECT_EQ(first.failure(), NetFailure::kTimeout);
  EXPECT_EQ(std::string(first.what()), "rank 1 not reached: it has not come");
  const auto last = lonely({store, "b", 2, 3}, Deadline::after_ms(50));
  EXPECT_EQ(last.failure(), NetFailure::kTimeout);
  EXPECT_TRUE(std::string(last.what()).starts_with("rank 0 not reached: "));
}

// A process with another token, at the address of a rank or with a rank's address in the store.
TEST(Meeting, AnImpostorIsNotMet) {
  const TemporaryDirectory folder;
  FileRendezvous store(folder.path());
  EndpointOptions other;
  other.token = "guess";
  const Endpoint impostor(other);
  std::thread at_the_door([&] {
    EXPECT_THROW(meet_ranks(*impostor.impl(), {store, "c", 1, 2}, Deadline::after_ms(30'000)),
                 NetError);
  });
  EXPECT_EQ(lonely({store, "c", 0, 2}, Deadline::after_ms(300)).failure(), NetFailure::kTimeout);
  at_the_door.join();
}

}  // namespace
}  // namespace satrap::net
