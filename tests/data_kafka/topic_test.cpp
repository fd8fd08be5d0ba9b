// Topics read through librdkafka from its mock broker.
#include "satrap/data/topic.h"

#include <algorithm>
#include <chrono>
#include <random>

#include <gmock/gmock.h>

#include "satrap/data/kafka_support.h"
#include "satrap/data/open_rows.h"
#include "tests/data/text_files.h"
#include "tests/data_kafka/mock_broker.h"

namespace satrap::data {
namespace {

using ::testing::HasSubstr;

class Topic : public ::testing::Test {
 protected:
  DataConfig config(const std::string& topic) {
    DataConfig data;
    data.train.path = {broker_.url(topic)};
    data.schema.header = false;
    data.schema.columns = {"label", "id"};
    data.schema.features = {FeatureConfig{.name = "id", .type = IdType::kInt}};
    data.batch_size = 10;
    data.kafka.timeout = "10min";  // however busy the machine is
    return data;
  }

  /// The ids of a pass.
  static std::vector<std::uint64_t> read(const DataConfig& data, const ReadOptions& options = {}) {
    return read(Dataset(data), options);
  }
  static std::vector<std::uint64_t> read(const Dataset& data, const ReadOptions& options = {}) {
    const auto batches = open_batches(data, fixed_transforms(data.schema()), Role::kTrain, options);
    std::vector<std::uint64_t> ids;
    Batch batch;
    while (batches->next(batch)) ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
    return ids;
  }

  void fill(const std::string& topic, int partition, int begin, int end) {
    std::vector<std::optional<std::string>> values;
    for (int i = begin; i < end; ++i) values.emplace_back("1," + std::to_string(i));
    broker_.write(topic, partition, values);
  }

  static std::vector<std::uint64_t> range(std::uint64_t begin, std::uint64_t end) {
    std::vector<std::uint64_t> all;
    for (; begin < end; ++begin) all.push_back(begin);
    return all;
  }

  MockBroker broker_;
};

TEST_F(Topic, IsReadInTheOrderOfItsPartitionsUpToTheWatermark) {
  broker_.create("clicks", 2);
  fill("clicks", 1, 2000, 3500);
  fill("clicks", 0, 0, 500);
  std::vector<std::uint64_t> expected = range(0, 500), rest = range(2000, 3500);
  expected.insert(expected.end(), rest.begin(), rest.end());
  const Dataset data(config("clicks"));
  EXPECT_EQ(data.topic_start()->partitions.size(), 2U);
  fill("clicks", 0, 500, 600);  // after the end of the job
  EXPECT_EQ(read(data), expected);
  EXPECT_EQ(read(data), expected) << "once more";
}

TEST_F(Topic, EveryRankGetsItsRows) {
  broker_.create("clicks", 2);
  fill("clicks", 0, 0, 55);
  fill("clicks", 1, 55, 100);
  const Dataset data(config("clicks"));
  std::vector<std::uint64_t> all;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const auto mine = read(data, {.rank = rank, .world_size = 3});
    EXPECT_GT(mine.size(), 20U);
    all.insert(all.end(), mine.begin(), mine.end());
  }
  EXPECT_THAT(all, ::testing::UnorderedElementsAreArray(range(0, 100)));
}

TEST_F(Topic, WithoutAnEndMoreRanksThanPartitionsAreRefused) {
  broker_.create("clicks", 1);
  DataConfig data = config("clicks");
  data.kafka.end = TopicEnd::kNever;
  EXPECT_THAT(
      error_of([&] { read(data, {.rank = 1, .world_size = 2}); }, ErrorCode::kInvalidConfig),
      HasSubstr("topic 'clicks' has 1, fewer than the job's 2 ranks"));
}

TEST_F(Topic, WithoutAnEndMessagesThatHaveBeenReadWholeAreNotNeededToContinue) {
  broker_.create("clicks", 1);
  fill("clicks", 0, 0, 20);
  DataConfig data = config("clicks");
  data.kafka.end = TopicEnd::kNever;
  const Schema schema = resolve_schema(data);
  const auto batches = open_batches(Dataset(data), fixed_transforms(schema), Role::kTrain, {});
  EXPECT_TRUE(batches->is_endless());
  Batch batch;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(batches->next(batch));
  EXPECT_FALSE(batches->wait(std::chrono::milliseconds(0)));
  const TopicPosition::Partition at =
      batches->topic_position(batches->position())->partitions.front();
  EXPECT_EQ(at.next, 20);
  EXPECT_EQ(at.skip, 0);
  const std::int64_t day = 24 * 3600 * 1000;
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  EXPECT_GT(batches->stats().time_ms, now - day);
  EXPECT_LT(batches->stats().time_ms, now + day);
  batches->close();
}

/// Several ranks, one after another, from where all of them are.
class Ranks {
 public:
  Ranks(const DataConfig& data, const TopicPosition& start, std::int64_t num_ranks)
      : start_(start) {
    const Dataset mine = Dataset(data).starting_at(start);
    for (std::int64_t rank = 0; rank < num_ranks; ++rank) {
      sources_.push_back(open_batches(mine, fixed_transforms(mine.schema()), Role::kTrain,
                                      {.rank = rank,
                                       .world_size = num_ranks,
                                       .batch_size = 7,
                                       .start = {.next_row = start.row, .rows_read = start.row}}));
    }
  }

  /// Trains a rank on a batch.
  void step(std::int64_t rank, std::vector<std::uint64_t>& ids) {
    Batch batch;
    ASSERT_TRUE(sources_[static_cast<std::size_t>(rank)]->next(batch));
    ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
  }

  TopicPosition position() const {
    std::vector<TopicPosition> shares;
    for (const auto& source : sources_) {
      DataPosition at = source->position();
      at.next_row = std::max(at.next_row, start_.row);
      shares.push_back(*source->topic_position(at));
    }
    return TopicPosition::merge(shares);
  }

 private:
  const TopicPosition start_;
  std::vector<std::unique_ptr<BatchSource>> sources_;
};

TEST_F(Topic, WithoutAnEndEveryRowIsOfOneRankThroughRestartsWithOtherRanks) {
  constexpr int kPartitions = 5, kRowsEach = 700;
  broker_.create("clicks", kPartitions);
  std::mt19937_64 random(17);
  for (int p = 0; p < kPartitions; ++p) {  // in messages of several rows
    std::vector<std::optional<std::string>> values;
    for (int i = 0; i < kRowsEach;) {
      std::string text;
      for (std::uint64_t lines = 1 + random() % 9; lines > 0 && i < kRowsEach; --lines, ++i) {
        text += "1," + std::to_string(kRowsEach * p + i) + (lines > 1 ? "\n" : "");
      }
      values.emplace_back(std::move(text));
      if (random() % 10 == 0) values.emplace_back();  // without a value
    }
    broker_.write("clicks", p, values);
  }
  DataConfig data = config("clicks");
  data.kafka.end = TopicEnd::kNever;
  TopicPosition at = begin_topic(data);
  std::vector<std::uint64_t> ids;
  for (const std::int64_t num_ranks : {2, 3, 1, 5, 5, 4}) {
    Ranks ranks(data, at, num_ranks);
    for (std::int64_t rank = 0; rank < num_ranks; ++rank) {
      for (std::uint64_t steps = random() % 8; steps > 0; --steps) ranks.step(rank, ids);
    }
    at = continue_topic(data, ranks.position(), "the last checkpoint");
  }
  data.batch_size = 1;
  data.kafka.end = TopicEnd::kWatermark;
  const Dataset last = Dataset(data).starting_at(continue_topic(data, at, "the last"));
  const auto rest = read(last, {.start = {.batches = 1, .next_row = at.row, .rows_read = at.row}});
  EXPECT_GT(ids.size(), 150U);
  ids.insert(ids.end(), rest.begin(), rest.end());
  EXPECT_THAT(ids, ::testing::UnorderedElementsAreArray(range(0, kPartitions * kRowsEach)));
}

TEST_F(Topic, ShuffledEpochsHaveTheSameRows) {
  broker_.create("clicks", 1);
  fill("clicks", 0, 0, 100);
  DataConfig data = config("clicks");
  data.shuffle_rows = 20;
  const std::vector<std::uint64_t> ids = read(data, {.epochs = 2});
  ASSERT_EQ(ids.size(), 200U);
  EXPECT_THAT(std::vector<std::uint64_t>(ids.begin(), ids.begin() + 100),
              ::testing::UnorderedElementsAreArray(range(0, 100)));
  EXPECT_NE(std::vector<std::uint64_t>(ids.begin(), ids.begin() + 100), range(0, 100));
}

TEST_F(Topic, AStreamContinuesAtItsPosition) {
  broker_.create("clicks", 3);
  for (int p = 0; p < 3; ++p) fill("clicks", p, 1000 * p, 1000 * p + 120);
  DataConfig data = config("clicks");
  const Schema schema = resolve_schema(data);
  const std::vector<std::uint64_t> all = read(data);
  const auto first = open_batches(Dataset(data), fixed_transforms(schema), Role::kTrain, {});
  Batch batch;
  for (int i = 0; i < 17; ++i) ASSERT_TRUE(first->next(batch));
  const std::optional<TopicPosition> at = first->topic_position(first->position());
  ASSERT_TRUE(at);
  EXPECT_EQ(at->turn, 1);
  EXPECT_GE(first->stats().lag, 0);
  fill("clicks", 0, 120, 130);
  const Dataset rest = Dataset(data).starting_at(continue_topic(data, *at, "step 17"));
  EXPECT_EQ(read(rest, {.start = first->position()}),
            std::vector<std::uint64_t>(all.begin() + 170, all.end()));
}

TEST_F(Topic, ContinuingIsRefusedWhereItCannotBeExact) {
  broker_.create("clicks", 2);
  fill("clicks", 0, 0, 10);
  const DataConfig data = config("clicks");
  const TopicPosition begin = begin_topic(data);
  TopicPosition other = begin;
  other.topic = "views";
  EXPECT_THAT(error_of([&] { continue_topic(data, other, "step 1"); }, ErrorCode::kInvalidConfig),
              HasSubstr("cannot continue from step 1 with topic 'clicks': it has a position in "
                        "topic 'views'"));
  TopicPosition ahead = begin;
  ahead.partitions[0].next = ahead.partitions[0].end = 11;
  EXPECT_THAT(error_of([&] { continue_topic(data, ahead, "step 1"); }),
              HasSubstr("partition 0: offset 11 is next, and the topic ends at 10"));
  TopicPosition more = begin;
  more.partitions.emplace_back();
  EXPECT_THAT(error_of([&] { continue_topic(data, more, "step 1"); }),
              HasSubstr("had 3 partitions and has 2"));
}

TEST_F(Topic, WithoutAnEndNewPartitionsAreReadToo) {
  broker_.create("clicks", 2);
  fill("clicks", 1, 0, 3);
  DataConfig data = config("clicks");
  TopicPosition saved = begin_topic(data);
  saved.partitions.pop_back();
  EXPECT_EQ(continue_topic(data, saved, "step 1").partitions.size(), 1U);
  data.kafka.end = TopicEnd::kNever;
  const TopicPosition now = continue_topic(data, saved, "step 1");
  ASSERT_EQ(now.partitions.size(), 2U);
  EXPECT_EQ(now.partitions[0].end, TopicPosition::kNoEnd);
  EXPECT_EQ(now.partitions[1], TopicPosition::Partition());
}

TEST_F(Topic, WithoutAnEndAStopEndsTheStreamAfterWholeBatches) {
  broker_.create("clicks", 2);
  fill("clicks", 0, 0, 25);
  DataConfig data = config("clicks");
  data.kafka.end = TopicEnd::kNever;
  const Schema schema = resolve_schema(data);
  std::atomic<bool> stop = false;
  const auto batches =
      open_batches(Dataset(data), fixed_transforms(schema), Role::kTrain, {.stop = &stop});
  Batch batch;
  ASSERT_TRUE(batches->next(batch));
  ASSERT_TRUE(batches->next(batch));
  fill("clicks", 1, 0, 5);
  ASSERT_TRUE(batches->next(batch));
  EXPECT_EQ(batches->position().next_row, 30);
  stop = true;
  EXPECT_FALSE(batches->next(batch));
}

TEST_F(Topic, ABrokerMayGoAndComeBack) {
  broker_.create("clicks", 1);
  fill("clicks", 0, 0, 10);
  DataConfig data = config("clicks");
  data.kafka.end = TopicEnd::kNever;
  data.kafka.properties = {"reconnect.backoff.max.ms=100"};
  const Schema schema = resolve_schema(data);
  const auto batches = open_batches(Dataset(data), fixed_transforms(schema), Role::kTrain, {});
  Batch batch;
  ASSERT_TRUE(batches->next(batch));
  broker_.go_down();
  broker_.come_up();
  fill("clicks", 0, 10, 20);
  ASSERT_TRUE(batches->next(batch));
  EXPECT_EQ(batch.ids, range(10, 20));
  batches->close();
}

TEST_F(Topic, ABrokerThatDoesNotAnswerIsAnError) {
  DataConfig data = config("clicks");
  data.train.path = {"kafka://127.0.0.1:1/clicks"};
  data.kafka.timeout = "1ms";
  EXPECT_THAT(error_of([&] { begin_topic(data); }, ErrorCode::kIo),
              HasSubstr("topic 'clicks' at kafka://127.0.0.1:1 cannot be reached"));
}

TEST_F(Topic, AStopEndsTheWaitForABroker) {
  DataConfig data = config("clicks");
  data.train.path = {"kafka://127.0.0.1:1/clicks"};
  const std::atomic<bool> stop = true;
  EXPECT_THAT(error_of([&] { begin_topic(data, &stop); }, ErrorCode::kIo),
              HasSubstr("was not waited for after the signal to stop"));
}

TEST_F(Topic, DamagedMessagesAreAnErrorAndOtherErrorsPass) {
  broker_.create("clicks", 1);
  fill("clicks", 0, 0, 10);
  const DataConfig data = config("clicks");
  broker_.answer_fetch(RD_KAFKA_RESP_ERR_INVALID_MSG);
  EXPECT_EQ(read(data), range(0, 10));
  broker_.answer_fetch(RD_KAFKA_RESP_ERR__BAD_MSG);
  EXPECT_THAT(error_of([&] { read(data); }, ErrorCode::kIo),
              HasSubstr("has damaged messages in partition 0: "));
}

TEST_F(Topic, APropertyThatIsNoneIsRefusedWithoutItsValue) {
  DataConfig data = config("clicks");
  data.kafka.properties = {"sasl.passwort=hush"};
  const std::string error = error_of([&] { begin_topic(data); }, ErrorCode::kInvalidConfig);
  EXPECT_THAT(error, HasSubstr("has no property 'sasl.passwort'"));
  EXPECT_EQ(error.find("hush"), std::string::npos);
}

TEST_F(Topic, OffsetsAreCommittedForAGroup) {
  broker_.create("clicks", 2);
  fill("clicks", 0, 0, 9);
  DataConfig data = config("clicks");
  data.kafka.group = "trainer";
  TopicPosition position = begin_topic(data);
  position.partitions[0].next = 7;
  EXPECT_NO_THROW(commit_topic(data, position));
  broker_.go_down();
  EXPECT_THAT(error_of([&] { commit_topic(data, position); }, ErrorCode::kIo),
              HasSubstr("does not take the offsets of the group: "));
}

TEST(KafkaSupport, NamesTheClient) { EXPECT_THAT(describe_kafka(), HasSubstr("librdkafka 2")); }

}  // namespace
}  // namespace satrap::data
