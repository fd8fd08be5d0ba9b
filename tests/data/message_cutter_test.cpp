#include "src/data/topic/message_cutter.h"

#include <gmock/gmock.h>

#include "satrap/core/hash.h"
#include "tests/data/fake_consumer.h"
#include "tests/data/parsed_rows.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kTurn = MessageCutter::kMessagesPerTurn;

Schema topic_schema() {
  DataConfig config;
  config.schema.header = false;
  config.schema.columns = {"label", "id"};
  config.schema.features = {FeatureConfig{.name = "id", .type = IdType::kInt}};
  return resolve_schema(config);
}

TopicPosition whole(const FakeTopic& topic, bool is_endless = false) {
  TopicPosition position{.topic = "clicks", .epoch = 0, .row = 0, .turn = 0, .partitions = {}};
  for (const auto& messages : topic) {
    const std::int64_t end = messages.empty() ? 0 : messages.rbegin()->first + 1;
    position.partitions.push_back({.end = is_endless ? TopicPosition::kNoEnd : end});
  }
  return position;
}

/// `numbers[p]` messages of one line in partition p; the line tells where it is.
FakeTopic topic_of(const std::vector<std::int64_t>& numbers) {
  FakeTopic topic(numbers.size());
  for (std::size_t p = 0; p < numbers.size(); ++p) {
    for (std::int64_t i = 0; i < numbers[p]; ++i) topic[p][i] = concat(p, ",", i);
  }
  return topic;
}

class Reader {
 public:
  explicit Reader(const FakeTopic& topic) : consumer(std::make_unique<FakeConsumer>(topic)) {}

  std::unique_ptr<FakeConsumer> consumer;
  RowPass pass;
  MessageCutter::Limits limits{.block_bytes = 100, .timeout_ms = 60'000, .wait_ms = 0};
  std::shared_ptr<TopicLog> log;

  std::unique_ptr<MessageCutter> open(const TopicPosition& start) {
    return std::make_unique<MessageCutter>(schema_, std::move(consumer), "kafka://b/clicks", start,
                                           pass, limits, log);
  }

  /// All lines from `start` on, those before pass.first_row left out.
  std::vector<std::string> lines(const TopicPosition& start) {
    std::vector<std::string> all;
    const std::unique_ptr<MessageCutter> cutter = open(start);
    TextBlock block;
    while (cutter->next(block)) append(block, pass.first_row, all);
    return all;
  }

  static void append(const TextBlock& block, std::int64_t first, std::vector<std::string>& all) {
    std::int64_t row = block.first_row;
    const char* line = block.text_begin();
    for (; line < block.text_end(); ++row) {
      const char* const end = std::find(line, block.text_end(), '\n');
      if (row >= first) all.emplace_back(line, end);
      line = end + 1;
    }
    EXPECT_EQ(row, block.first_row + block.num_lines);
  }

 private:
  const Schema schema_ = topic_schema();
};

std::vector<std::string> read_topic(const FakeTopic& topic) {
  return Reader(topic).lines(whole(topic));
}

TEST(MessageCutter, PartitionsTakeTurnsAndExhaustedOnesAreSkipped) {
  const FakeTopic topic = topic_of({kTurn + 2, 3, 0, 2 * kTurn});
  std::vector<std::string> expected;
  const auto add = [&](int partition, std::int64_t begin, std::int64_t end) {
    for (; begin < end; ++begin) expected.push_back(concat(partition, ",", begin));
  };
  add(0, 0, kTurn);
  add(1, 0, 3);
  add(3, 0, kTurn);
  add(0, kTurn, kTurn + 2);
  add(3, kTurn, 2 * kTurn);
  EXPECT_EQ(read_topic(topic), expected);
}

TEST(MessageCutter, AnEmptyTopicHasNoRows) {
  EXPECT_THAT(read_topic({}), IsEmpty());
  EXPECT_THAT(read_topic(topic_of({0, 0})), IsEmpty());
}

TEST(MessageCutter, AMessageHasOneOrSeveralLines) {
  const FakeTopic topic = {{{0, "a"}, {1, "b\nc\n"}, {2, ""}, {3, "d\n\ne"}}};
  EXPECT_THAT(read_topic(topic), ElementsAre("a", "b", "c", "", "d", "", "e"));
}

TEST(MessageCutter, MessagesWithoutAValueAreSkipped) {
  const FakeTopic topic = {{{0, std::nullopt}, {1, "a"}, {2, std::nullopt}}, {{0, std::nullopt}}};
  EXPECT_THAT(read_topic(topic), ElementsAre("a"));
}

TEST(MessageCutter, AMessageMayBeLargerThanABlock) {
  const std::string large(1000, '7');
  EXPECT_THAT(read_topic({{{0, "a"}, {1, large}, {2, "b"}}}), ElementsAre("a", large, "b"));
}

TEST(MessageCutter, OffsetsWithoutAMessageArePassed) {
  const FakeTopic topic = {{{3, "a"}, {kTurn + 5, "b"}}, {{0, "c"}}};
  EXPECT_THAT(read_topic(topic), ElementsAre("a", "c", "b"));

  const FakeTopic marked = {{{0, "a"}}};
  Reader with_marks(marked);
  with_marks.consumer->end_marks = 4;  // marks of transactions at the end
  TopicPosition start = whole(marked);
  start.partitions[0].end = 4;
  EXPECT_THAT(with_marks.lines(start), ElementsAre("a"));

  Reader marks_alone(marked);
  marks_alone.consumer->end_marks = 4;
  start.partitions[0].next = 1;
  EXPECT_THAT(marks_alone.lines(start), IsEmpty());
}

TEST(MessageCutter, MessagesAfterTheEndAreNotRead) {
  const FakeTopic topic = topic_of({5});
  TopicPosition start = whole(topic);
  start.partitions[0].end = 2;
  EXPECT_THAT(Reader(topic).lines(start), ElementsAre("0,0", "0,1"));
}

TEST(MessageCutter, ExhaustedPartitionsAreNotFetched) {
  const FakeTopic topic = topic_of({2, 3});
  TopicPosition start = whole(topic);
  start.partitions[0].next = 2;
  Reader reader(topic);
  const FakeConsumer* const consumer = reader.consumer.get();
  const auto cutter = reader.open(start);
  EXPECT_THAT(consumer->started, ElementsAre(KafkaConsumer::kNotRead, 0));
}

/// Positions of a checkpoint, between any two rows, must lead to the same rows.
TEST(MessageCutter, ReadingContinuesAtEveryRowOfTheLog) {
  FakeTopic topic = topic_of({2 * kTurn + 17, 30, kTurn + 1});
  RandomStream random(hash64(7));
  for (auto& messages : topic) {
    for (auto& [offset, value] : messages) {
      const std::uint64_t draw = random.bits(static_cast<std::uint64_t>(offset)) % 5;
      if (draw == 0) value = std::nullopt;
      if (draw == 1) *value += "\n2," + *value + "\n";
    }
  }
  const std::vector<std::string> all = read_topic(topic);
  for (std::size_t row = 0; row <= all.size(); row += 61) {
    Reader first(topic);
    first.log = std::make_shared<TopicLog>(whole(topic));
    first.lines(whole(topic));
    const auto next_row = static_cast<std::int64_t>(row);
    const TopicPosition saved =
        TopicPosition::from_json(first.log->at({.next_row = next_row}).to_json(), "saved");
    Reader second(topic);
    second.pass.first_row = next_row;
    second.limits.block_bytes = 1000;
    second.consumer->most_messages = 2;
    EXPECT_EQ(second.lines(saved), std::vector<std::string>(all.begin() + row, all.end())) << row;
  }
}

TEST(MessageCutter, WithoutAnEndEveryMessageIsReadOnceHoweverTheyArrive) {
  FakeTopic topic(3);
  Reader reader(topic);
  reader.log = std::make_shared<TopicLog>(whole(topic, true));
  std::atomic<bool> stop = false;
  reader.consumer->stop_at_wait = &stop;
  reader.pass.stop = &stop;
  RandomStream random(hash64(11));
  std::vector<std::string> read, written;
  const auto cutter = reader.open(whole(topic, true));
  TextBlock block;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const std::size_t p = random.bits(2 * i) % 3;
    written.push_back(concat(p, ",", topic[p].size()));
    topic[p][std::ssize(topic[p])] = written.back();
    if (random.bits(2 * i + 1) % 4 != 0) continue;
    ASSERT_TRUE(cutter->next(block));
    Reader::append(block, 0, read);
  }
  while (cutter->next(block)) Reader::append(block, 0, read);  // wait() stops it
  EXPECT_TRUE(cutter->was_cancelled());
  EXPECT_EQ(cutter->lag(), 0);
  EXPECT_THAT(read, ::testing::UnorderedElementsAreArray(written));

  for (std::size_t row = 0; row < read.size(); row += 7) {
    const TopicPosition saved = reader.log->at({.next_row = static_cast<std::int64_t>(row)});
    Reader again(topic);
    stop = false;
    again.consumer->stop_at_wait = &stop;
    again.pass.stop = &stop;
    again.pass.first_row = static_cast<std::int64_t>(row);
    std::vector<std::string> rows(read.begin(), read.begin() + static_cast<std::ptrdiff_t>(row));
    for (const std::string& line : again.lines(saved)) rows.push_back(line);
    EXPECT_THAT(rows, ::testing::UnorderedElementsAreArray(written)) << row;
  }
}

TEST(MessageCutter, ABadRowIsNamedByItsMessage) {
  const FakeTopic topic = {{}, {{0, "1,7"}, {1, "1,8\n1\n"}}};
  Reader reader(topic);
  const Schema schema = topic_schema();
  std::vector<std::string> told;
  const auto policy = std::make_shared<BadRowPolicy>(
      false, BadRowLimit(), [&](const std::string& line) { told.push_back(line); });
  TextRows rows(
      reader.open(whole(topic)),
      [&] { return make_block_parser(FileFormat::kDelimited, schema, reader.pass); }, reader.pass,
      policy);
  EXPECT_EQ(all_rows(rows).size(), 2U);
  ASSERT_FALSE(told.empty());
  EXPECT_THAT(told[0], HasSubstr("kafka://b/clicks, partition 1, offset 1, line 2: expected 2 "
                                 "columns, got 1"));
}

TEST(MessageCutter, TextWithoutColumnsIsToldFromRows) {
  const FakeTopic topic = {{{0, "{\"label\": 1}"}}};
  EXPECT_THAT(error_of([&] { read_topic(topic); }),
              HasSubstr("kafka://b/clicks, partition 0, offset 0: "));
}

TEST(MessageCutter, MessagesThatAreGoneAreNamedWithBothOffsets) {
  const FakeTopic topic = topic_of({2, 9});
  const std::atomic<std::int64_t> first_there = 6;
  Reader reader(topic);
  reader.consumer->first_there = &first_there;
  TopicPosition start = whole(topic);
  start.partitions[0].next = 2;
  start.partitions[1].next = 4;
  EXPECT_THAT(error_of([&] { reader.lines(start); }),
              HasSubstr("kafka://b/clicks, partition 1: the message with offset 4, which is next, "
                        "is no longer there: the first one is 6"));
}

TEST(MessageCutter, MessagesBeforeThoseThatAreGoneAreUsed) {
  const FakeTopic topic = topic_of({9});
  Reader reader(topic);
  reader.consumer->gone_from = 2;
  reader.limits.block_bytes = 1;  // a block for each message
  const auto cutter = reader.open(whole(topic));
  TextBlock block;
  std::vector<std::string> lines;
  const std::string error = error_of([&] {
    while (cutter->next(block)) Reader::append(block, 0, lines);
  });
  EXPECT_THAT(lines, ElementsAre("0,0", "0,1"));
  EXPECT_THAT(error, HasSubstr("the message with offset 2, which is next, is no longer there"));
}

TEST(MessageCutter, WithoutAnEndTheLagIsKnownWhenTheBrokerHasToldIt) {
  const FakeTopic topic = topic_of({9});
  Reader reader(topic);
  FakeConsumer* const consumer = reader.consumer.get();
  consumer->knows_high = false;
  reader.limits.block_bytes = 1;
  const auto cutter = reader.open(whole(topic, true));
  TextBlock block;
  ASSERT_TRUE(cutter->next(block));
  EXPECT_EQ(cutter->lag(), -1);
  consumer->knows_high = true;
  ASSERT_TRUE(cutter->next(block));
  EXPECT_EQ(cutter->lag(), 7);
}

TEST(MessageCutter, TheTimeIsThatOfThePartitionFurthestBehindThatHasMore) {
  const FakeTopic topic = topic_of({3, 2, 0});
  for (const bool is_endless : {false, true}) {
    Reader reader(topic);
    reader.consumer->times = {{0, {{0, 500}, {1, 400}, {2, 900}}}, {1, {{0, 100}, {1, 200}}}};
    reader.consumer->most_messages = 1;
    reader.limits.block_bytes = 1;  // a block for each message
    const std::atomic<bool> stop = false;
    reader.pass.stop = &stop;
    const auto cutter = reader.open(whole(topic, is_endless));
    TextBlock block;
    std::vector<std::int64_t> times;
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(cutter->next(block));
      times.push_back(block.time_ms);
    }
    // Partition 1 is not known until it is read; 0 has no more then; at the end nothing has.
    EXPECT_THAT(times, ElementsAre(-1, -1, -1, 100, 900)) << is_endless;
  }
}

TEST(MessageCutter, OfMessagesWithoutATimeNoneIsKnown) {
  const FakeTopic topic = topic_of({2});
  Reader without(topic);
  const auto cutter = without.open(whole(topic));
  TextBlock block;
  ASSERT_TRUE(cutter->next(block));
  EXPECT_EQ(block.time_ms, -1);
}

TEST(MessageCutter, AMessageThatDoesNotComeIsAnError) {
  const FakeTopic topic = topic_of({2});
  TopicPosition start = whole(topic);
  start.partitions[0].end = 3;
  Reader reader(topic);
  reader.limits.timeout_ms = 0;
  EXPECT_THAT(error_of([&] { reader.lines(start); }, ErrorCode::kIo),
              HasSubstr("does not send messages"));
}

TEST(MessageCutter, WithoutAnEndABrokerThatStaysAwayIsAnError) {
  const FakeTopic topic = topic_of({2});
  Reader reader(topic);
  reader.limits.timeout_ms = 0;
  reader.consumer->unreachable = "b: connection refused";
  EXPECT_THAT(error_of([&] { reader.lines(whole(topic, true)); }, ErrorCode::kIo),
              HasSubstr("data.kafka.timeout = 0ms: b: connection refused"));
}

TEST(MessageCutter, RowsOfAnotherRankAreOnlyCounted) {
  const FakeTopic topic = topic_of({100});
  Reader reader(topic);
  reader.pass.split = {.rank = 1, .world_size = 2, .rows_per_turn = 50};
  const auto cutter = reader.open(whole(topic));
  TextBlock block;
  ASSERT_TRUE(cutter->next(block));
  EXPECT_GT(block.first_row + block.num_lines, 50);
}

TEST(MessageCutter, MaxRowsEndsAPass) {
  const FakeTopic topic = topic_of({100});
  Reader reader(topic);
  reader.pass.max_rows = 30;
  const std::vector<std::string> lines = reader.lines(whole(topic));
  EXPECT_GE(lines.size(), 30U);
  EXPECT_LT(lines.size(), 100U);
}

TEST(MessageCutter, ABlockHasRowsOfOneTurnOfTheStream) {
  FakeTopic topic(2);
  std::string text;
  for (std::int64_t i = 0, row = 0; i < 30; ++i) {
    text.clear();
    for (std::int64_t n = i == 7 ? 40 : i % 4 + 1; n > 0; --n) text += concat(row++, ",7\n");
    topic[static_cast<std::size_t>(i / 20)][i % 20] = text;
  }
  const std::vector<std::string> all = Reader(topic).lines(whole(topic));
  for (std::int64_t number = 0; number < 3; ++number) {
    Reader reader(topic);
    reader.pass.split.stream = {.number = number, .count = 3, .rows_per_turn = 8};
    const RowStream stream = reader.pass.split.stream;
    const auto log = reader.log = std::make_shared<TopicLog>(whole(topic));
    const std::unique_ptr<MessageCutter> cutter = reader.open(whole(topic));
    TextBlock block;
    std::int64_t num_own = 0, last_row = 0;
    while (cutter->next(block)) {
      EXPECT_LE(block.first_row + block.num_lines, stream.own_end(block.first_row));
      std::vector<std::string> lines;
      Reader::append(block, 0, lines);
      for (std::size_t i = 0; i < lines.size(); ++i) {
        last_row = block.first_row + static_cast<std::int64_t>(i);
        num_own += stream.owns(last_row) ? 1 : 0;
        EXPECT_EQ(lines[i], all[static_cast<std::size_t>(last_row)]);
      }
    }
    std::int64_t expected_own = 0;
    for (std::int64_t row = 0; row < std::ssize(all); ++row) expected_own += stream.owns(row);
    EXPECT_EQ(num_own, expected_own);
    // The place of each row, from which another stream, or none, continues.
    for (std::int64_t row = 0; row <= last_row; ++row) {
      const TopicPosition at = log->at({.epoch = 0, .batches = 1, .next_row = row});
      EXPECT_LE(at.row, row);
      Reader rest(topic);
      rest.pass.first_row = row;
      EXPECT_EQ(rest.lines(at), std::vector(all.begin() + row, all.end())) << row;
    }
  }
}

}  // namespace
}  // namespace satrap::data
