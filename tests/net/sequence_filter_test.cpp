#include "satrap/net/sequence_filter.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>

#include "tests/net/fixture.h"

namespace satrap::net {
namespace {

RequestTag tag(std::uint64_t client, std::uint64_t sequence) { return {client, sequence, 0, 0}; }

TEST(SequenceFilter, RepeatedRequestIsAppliedOnce) {
  SequenceFilter filter;
  EXPECT_TRUE(filter.begin(tag(1, 1), soon()));
  filter.finish(tag(1, 1));
  EXPECT_FALSE(filter.begin(tag(1, 1), soon()));
  EXPECT_TRUE(filter.begin(tag(2, 1), soon())) << "another client's number 1";
}

TEST(SequenceFilter, AbandonedRequestIsAppliedWhenItComesAgain) {
  SequenceFilter filter;
  EXPECT_TRUE(filter.begin(tag(1, 1), soon()));
  filter.abandon(tag(1, 1));
  EXPECT_TRUE(filter.begin(tag(1, 1), soon()));
}

TEST(SequenceFilter, AnyOrderEndsInOneNumber) {
  SequenceFilter filter;
  std::vector<std::uint64_t> order(100);
  std::iota(order.begin(), order.end(), 1U);
  std::shuffle(order.begin(), order.end(), std::mt19937(7));
  for (const std::uint64_t sequence : order) {
    ASSERT_TRUE(filter.begin(tag(1, sequence), soon()));
    filter.finish(tag(1, sequence));
    ASSERT_FALSE(filter.begin(tag(1, sequence), soon()));
  }
  EXPECT_EQ(filter.applied_up_to(1), 100U);
}

TEST(SequenceFilter, RepetitionWaitsForTheOneUnderWay) {
  SequenceFilter filter;
  ASSERT_TRUE(filter.begin(tag(1, 1), soon()));
  EXPECT_EQ(failure_of([&] { filter.begin(tag(1, 1), Deadline::after_ms(20)); }),
            NetFailure::kTimeout);
  bool again = true;
  std::thread repetition([&] { again = filter.begin(tag(1, 1), soon()); });
  filter.finish(tag(1, 1));
  repetition.join();
  EXPECT_FALSE(again);
}

TEST(SequenceFilter, RequestWithoutANumberIsRefused) {
  SequenceFilter filter;
  EXPECT_EQ(failure_of([&] { filter.begin(tag(0, 1), soon()); }), NetFailure::kProtocol);
  EXPECT_EQ(failure_of([&] { filter.begin(tag(1, 0), soon()); }), NetFailure::kProtocol);
}

TEST(SequenceFilter, LongestSilentClientIsForgottenFirst) {
  SequenceFilter filter(2);
  for (const std::uint64_t client : {1U, 2U, 1U}) {
    const RequestTag next = tag(client, filter.applied_up_to(client) + 1);
    ASSERT_TRUE(filter.begin(next, soon()));
    filter.finish(next);
  }
  ASSERT_TRUE(filter.begin(tag(3, 1), soon()));
  filter.finish(tag(3, 1));
  EXPECT_EQ(filter.num_clients(), 2);
  EXPECT_EQ(filter.applied_up_to(1), 2U);
  EXPECT_EQ(filter.applied_up_to(2), 0U);
  filter.forget(1);
  EXPECT_EQ(filter.num_clients(), 1);
}

}  // namespace
}  // namespace satrap::net
