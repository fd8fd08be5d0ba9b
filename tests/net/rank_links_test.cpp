#include "satrap/net/rank_links.h"

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/net/fixture.h"

namespace satrap::net {
namespace {

constexpr std::uint64_t kSlot = 16;

// Links of three ranks, in one process.
class RankLinksTest : public NetTest {
 protected:
  static constexpr int kRanks = 3;

  RankLinksTest() {
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks.emplace_back([this, rank] {
        links_[static_cast<std::size_t>(rank)] = std::make_unique<RankLinks>(
            client_end_, MeetingPlace{*store_, "ranks", rank, kRanks}, soon());
      });
    }
    for (std::thread& rank : ranks) rank.join();
  }

  RankLinks& links(std::size_t rank) { return *links_[rank]; }

 private:
  std::array<std::unique_ptr<RankLinks>, kRanks> links_;
};

TEST_F(RankLinksTest, MessagesOfASlotArriveInOrderAndEmptyOnesAreNone) {
  const Bytes sent = some_bytes(1000), sent_next = some_bytes(10, 2);
  Bytes received(1000), received_next(10);
  Transfers from(links(2), kSlot), to(links(0), kSlot);
  from.send(0, sent);
  from.send(0, {});
  from.send(0, sent_next);
  to.receive(2, {});
  to.receive(2, received);
  to.receive(2, received_next);
  to.wait_for_first(2, soon());
  EXPECT_EQ(received, sent);
  to.wait(soon());
  from.wait(soon());
  EXPECT_EQ(received_next, sent_next);
}

TEST_F(RankLinksTest, AReceiveMeetsItsSlotAndItsRankAlone) {
  const Bytes of_one = some_bytes(4, 1), of_two = some_bytes(4, 2), of_next_slot = some_bytes(4, 3);
  Transfers one(links(1), kSlot), two(links(2), kSlot), next_slot(links(1), kSlot + 1);
  next_slot.send(0, of_next_slot);
  two.send(0, of_two);
  one.send(0, of_one);
  Bytes from_one(4), from_two(4), from_next_slot(4);
  Transfers to(links(0), kSlot), to_next_slot(links(0), kSlot + 1);
  to.receive(1, from_one);
  to.receive(2, from_two);
  to_next_slot.receive(1, from_next_slot);
  to.wait(soon());
  to_next_slot.wait(soon());
  EXPECT_EQ(from_one, of_one);
  EXPECT_EQ(from_two, of_two);
  EXPECT_EQ(from_next_slot, of_next_slot);
  for (Transfers* sent : {&one, &two, &next_slot}) sent->wait(soon());
}

TEST_F(RankLinksTest, ClosingThemEndsTheTransfersOfEveryRank) {
  Bytes received(4);
  Transfers third(links(2), kSlot);
  third.receive(1, received);
  links(0).close("done");
  EXPECT_TRUE(is_lost([&] { third.wait(soon()); }));
  EXPECT_EQ(message_of([&] { Transfers(links(0), kSlot).send(1, received); }), "done");
}

TEST_F(RankLinksTest, ARankThatIsLateIsNamed) {
  Bytes received(4);
  Transfers transfers(links(0), kSlot);
  transfers.receive(2, received);
  const auto wait = [&] { transfers.wait(Deadline::after_ms(50)); };
  const std::string message = message_of(wait);
  EXPECT_TRUE(message.starts_with("nothing received from rank 2 in time: ")) << message;
}

TEST_F(RankLinksTest, FailingThrowsWhatEndedThem) {
  EXPECT_EQ(failure_of([&] { links(0).fail("sizes differ"); }), NetFailure::kProtocol);
  EXPECT_EQ(message_of([&] { links(0).fail("another reason"); }), "sizes differ");
}

}  // namespace
}  // namespace satrap::net
