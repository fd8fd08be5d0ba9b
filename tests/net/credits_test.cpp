#include "src/net/credits.h"

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/net/fixture.h"

namespace satrap::net {
namespace {

Deadline in_a_minute() { return Deadline::after_ms(60'000); }

TEST(Credits, FreeSlotsAreTakenFromZero) {
  const Breaker breaker;
  Credits credits;
  credits.fill(3);
  EXPECT_EQ(credits.take(breaker, in_a_minute()), 0U);
  EXPECT_EQ(credits.take(breaker, in_a_minute()), 1U);
  EXPECT_EQ(credits.take(breaker, in_a_minute()), 2U);
}

TEST(Credits, ASlotGivenBackIsTheNextOne) {
  const Breaker breaker;
  Credits credits;
  credits.fill(3);
  EXPECT_EQ(credits.take(breaker, in_a_minute()), 0U);
  EXPECT_EQ(credits.take(breaker, in_a_minute()), 1U);
  credits.give_back(0);
  EXPECT_EQ(credits.take(breaker, in_a_minute()), 0U);
}

TEST(Credits, WithoutAFreeSlotItIsATimeoutAtTheDeadline) {
  const Breaker breaker;
  Credits credits;
  const auto take = [&] { credits.take(breaker, Deadline::after_ms(1)); };
  EXPECT_EQ(failure_of(take), NetFailure::kTimeout);
  credits.fill(1);
  take();
  EXPECT_EQ(message_of(take), "the server has answered none of the pending requests");
}

TEST(Credits, AFreeSlotIsTakenEvenAtTheDeadline) {
  const Breaker breaker;
  Credits credits;
  credits.fill(1);
  EXPECT_EQ(credits.take(breaker, Deadline::after_ms(0)), 0U);
}

TEST(Credits, ABrokenLinkGivesItsReasonThoughSlotsAreFree) {
  Breaker breaker;
  Credits credits;
  credits.fill(1);
  breaker.trip(NetFailure::kClosed, "the peer is gone");
  const auto take = [&] { credits.take(breaker, in_a_minute()); };
  EXPECT_EQ(failure_of(take), NetFailure::kClosed);
  EXPECT_NE(message_of(take).find("the peer is gone"), std::string::npos);
}

TEST(Credits, ASlotGivenBackEndsAWait) {
  const Breaker breaker;
  Credits credits;
  auto taken = std::async(std::launch::async, [&] { return credits.take(breaker, in_a_minute()); });
  credits.give_back(7);
  EXPECT_EQ(taken.get(), 7U);
}

TEST(Credits, ABreakEndsAllWaits) {
  Credits credits;
  Breaker breaker([&] { credits.wake(); });
  const Deadline deadline = in_a_minute();
  std::vector<std::future<std::optional<NetFailure>>> waits;
  for (int i = 0; i < 3; ++i) {
    waits.push_back(std::async(
        std::launch::async, [&] { return failure_of([&] { credits.take(breaker, deadline); }); }));
  }
  breaker.trip(NetFailure::kClosed, "gone");
  for (auto& wait : waits) EXPECT_EQ(wait.get(), NetFailure::kClosed);
  EXPECT_FALSE(deadline.has_passed());
}

TEST(Credits, NoTwoHoldersHaveTheSameSlot) {
  constexpr std::int64_t kSlots = 3;
  const Breaker breaker;
  Credits credits;
  credits.fill(kSlots);
  std::atomic<int> holders[kSlots] = {};
  std::atomic<bool> shared{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        const std::uint32_t slot = credits.take(breaker, in_a_minute());
        if (slot >= kSlots || holders[slot].fetch_add(1) != 0) shared = true;
        holders[slot].fetch_sub(1);
        credits.give_back(slot);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(shared);
}

}  // namespace
}  // namespace satrap::net
