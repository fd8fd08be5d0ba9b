#include "satrap/data/topic_position.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

TEST(TopicPosition, IsReadBackAsItWasWritten) {
  const TopicPosition position{
      .topic = "clicks",
      .epoch = 2,
      .row = 1'234'567'890'123,
      .turn = 1,
      .partitions = {{.first = 3, .next = 17, .end = 20}, {.first = 0, .next = 5, .skip = 2}}};
  EXPECT_EQ(TopicPosition::from_json(position.to_json(), "topic.json"), position);
}

TopicPosition endless(std::int64_t num_partitions) {
  TopicPosition position{.topic = "clicks", .epoch = 0, .row = 0, .turn = 0, .partitions = {}};
  position.partitions.resize(static_cast<std::size_t>(num_partitions));
  return position;
}

TEST(TopicPosition, EachPartitionIsInTheShareOfOneRank) {
  const TopicPosition all = endless(5);
  std::vector<std::int64_t> num_owners(5);
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const TopicPosition share = all.share_of_rank(rank, 3);
    for (std::size_t p = 0; p < 5; ++p) {
      if (share.partitions[p].end == TopicPosition::kNoEnd) ++num_owners[p];
    }
  }
  EXPECT_EQ(num_owners, std::vector<std::int64_t>(5, 1));
  EXPECT_EQ(all.share_of_rank(0, 1), all);
}

TEST(TopicPosition, MoreRanksThanPartitionsAreRefused) {
  EXPECT_NO_THROW(endless(3).share_of_rank(2, 3));
  EXPECT_EQ(error_of([] { endless(3).share_of_rank(0, 4); }, ErrorCode::kInvalidConfig),
            "data.kafka.end: never gives each rank partitions of its own: topic 'clicks' has 3, "
            "fewer than the job's 4 ranks; add partitions, or train with fewer ranks");
}

TEST(TopicPosition, SharesMergeToWhereEachRankIsInItsPartitions) {
  std::vector<TopicPosition> shares;
  for (std::int64_t rank = 0; rank < 2; ++rank) shares.push_back(endless(3).share_of_rank(rank, 2));
  shares[0].row = 40;
  shares[0].partitions[0].next = 10;
  shares[0].partitions[2].next = 12;
  shares[1].row = 70;
  shares[1].partitions[1] = {.first = 0, .next = 20, .skip = 3};
  const TopicPosition all = TopicPosition::merge(shares);
  EXPECT_EQ(all.row, 70);
  EXPECT_EQ(all.partitions[0].next, 10);
  EXPECT_EQ(all.partitions[1], shares[1].partitions[1]);
  EXPECT_EQ(all.partitions[2].next, 12);
  for (const TopicPosition::Partition& at : all.partitions)
    EXPECT_EQ(at.end, TopicPosition::kNoEnd);
}

TEST(TopicPosition, TextThatIsNoneIsRefused) {
  for (const char* const text :
       {"", "{}", "[]", R"({"topic": "t", "epoch": 0, "row": 0, "turn": 0, "partitions": []})",
        R"({"topic": "t", "epoch": 0, "row": "x", "turn": 0, "partitions": []})"}) {
    EXPECT_THROW(TopicPosition::from_json(text, "topic.json"), Error) << text;
  }
}

}  // namespace
}  // namespace satrap::data
