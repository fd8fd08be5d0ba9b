#include "src/data/topic/topic_log.h"

#include <gtest/gtest.h>

namespace satrap::data {
namespace {

TopicPosition two_partitions() {
  return {.topic = "clicks",
          .epoch = 0,
          .row = 0,
          .turn = 0,
          .partitions = {{.first = 5, .next = 5, .end = 25}, {.first = 0, .next = 0, .end = 10}}};
}

/// Rows 0 to 9 are of partition 0, 10 to 19 of partition 1, 20 to 29 of partition 0 again.
void fill(TopicLog& log) {
  log.add({.epoch = 0, .first_row = 0, .partition = 0, .begin = 5, .end = 15});
  log.add({.epoch = 0, .first_row = 10, .partition = 1, .begin = 0, .end = 10});
  log.add({.epoch = 0, .first_row = 20, .partition = 0, .begin = 15, .end = 25});
}

TEST(TopicLog, BeforeAnythingIsReadItIsAtTheStart) {
  TopicLog log(two_partitions());
  EXPECT_EQ(log.at({.next_row = 3}), two_partitions());
}

TEST(TopicLog, ARowIsInTheLastPieceThatBeginsBeforeIt) {
  TopicLog log(two_partitions());
  fill(log);
  EXPECT_EQ(log.at({.next_row = 9}), two_partitions());
  TopicPosition expected = two_partitions();
  expected.row = 10;
  expected.turn = 1;
  expected.partitions[0].next = 15;
  EXPECT_EQ(log.at({.next_row = 10}), expected);
  EXPECT_EQ(log.at({.next_row = 19}), expected) << "asked again, for a later row of it";
  expected.row = 20;
  expected.turn = 0;
  expected.partitions[1].next = 10;
  EXPECT_EQ(log.at({.next_row = 30}), expected) << "the end of what was read";
}

TEST(TopicLog, PiecesWithoutRowsAdvanceOffsets) {
  TopicLog log(two_partitions());
  log.add({.epoch = 0, .first_row = 0, .partition = 0, .begin = 5, .end = 15});
  log.add({.epoch = 0, .first_row = 10, .partition = 1, .begin = 0, .end = 10});
  log.add({.epoch = 0, .first_row = 10, .partition = 0, .begin = 15, .end = 25});
  const TopicPosition at = log.at({.next_row = 10});
  EXPECT_EQ(at.turn, 0);
  EXPECT_EQ(at.partitions[1].next, 10);
}

TEST(TopicLog, AnEpochBeginsAtTheFirstOffsetsAgain) {
  TopicLog log(two_partitions());
  fill(log);
  log.add({.epoch = 1, .first_row = 0, .partition = 0, .begin = 5, .end = 15});
  log.add({.epoch = 1, .first_row = 10, .partition = 1, .begin = 0, .end = 10});
  EXPECT_EQ(log.at({.epoch = 0, .next_row = 25}).row, 20) << "though the next epoch is read ahead";
  const TopicPosition at = log.at({.epoch = 1, .next_row = 12});
  EXPECT_EQ(at.epoch, 1);
  EXPECT_EQ(at.row, 10);
  EXPECT_EQ(at.partitions[0].next, 15);
  EXPECT_EQ(at.partitions[1].next, 0);
}

TEST(TopicLog, ShuffledRowsAreReadFromTheBeginningOfTheirEpoch) {
  TopicLog log(two_partitions());
  fill(log);
  EXPECT_EQ(log.at({.epoch = 1, .batches = 3, .next_row = 0}), two_partitions().beginning(1));
}

TEST(TopicLog, WithoutAnEndAPositionIsTheRowItself) {
  TopicPosition start = two_partitions();
  for (TopicPosition::Partition& at : start.partitions) at.end = TopicPosition::kNoEnd;
  start.row = 100;  // the job continues there
  start.partitions[1].skip = 2;
  TopicLog log(start);
  EXPECT_EQ(log.at({.next_row = 100}), start);
  log.add({.epoch = 0, .first_row = 100, .partition = 0, .begin = 5, .end = 15, .num_rows = 30});
  log.add({.epoch = 0,
           .first_row = 130,
           .partition = 1,
           .begin = 0,
           .end = 10,
           .skip = 2,
           .num_rows = 8});
  TopicPosition at = log.at({.next_row = 107});
  EXPECT_EQ(at.row, 107);
  EXPECT_EQ(at.partitions[0].next, 5);
  EXPECT_EQ(at.partitions[0].skip, 7);
  EXPECT_EQ(at.partitions[1].skip, 2);
  at = log.at({.next_row = 133});
  EXPECT_EQ(at.partitions[0].next, 15);
  EXPECT_EQ(at.partitions[0].skip, 0);
  EXPECT_EQ(at.partitions[1].next, 0);
  EXPECT_EQ(at.partitions[1].skip, 5);
  at = log.at({.next_row = 138});
  EXPECT_EQ(at.partitions[1].next, 10) << "what has been read whole may be deleted";
  EXPECT_EQ(at.partitions[1].skip, 0);
}

TEST(TopicLog, WithoutAnEndARankWithoutRowsIsWhereItContinued) {
  TopicPosition start = two_partitions();
  start.partitions[0] = {.first = 5, .next = 9, .skip = 1};
  TopicLog log(start);
  EXPECT_EQ(log.at({.next_row = 0}), start) << "not the beginning of the epoch";
}

}  // namespace
}  // namespace satrap::data
