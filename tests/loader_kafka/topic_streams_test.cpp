// A topic without an end that loaders read, from librdkafka's mock broker.
#include "src/loader/topic_streams.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "satrap/data/open_rows.h"
#include "satrap/data/topic.h"
#include "satrap/loader/loader_server.h"
#include "satrap/loader/loaders.h"
#include "satrap/net/file_rendezvous.h"
#include "tests/data_kafka/mock_broker.h"
#include "tests/support/temporary_directory.h"

namespace satrap::loader {
namespace {

constexpr int kPartitions = 5;
constexpr int kRows = 3000;  // of one partition; the id of a row says which it is
constexpr std::int64_t kTimeoutMs = 300'000;

net::EndpointOptions token() { return {.token = "secret"}; }

class TopicStreamsTest : public testing::Test {
 protected:
  TopicStreamsTest() : store_(std::make_shared<net::FileRendezvous>(folder_.path() + "/store")) {
    config_.train.path = {broker_.url("clicks")};
    config_.schema.header = false;
    config_.schema.columns = {"label", "id"};
    config_.schema.features = {data::FeatureConfig{.name = "id", .type = data::IdType::kInt}};
    config_.kafka.timeout = "10min";
    config_.kafka.end = data::TopicEnd::kNever;
    broker_.create("clicks", kPartitions);
  }

  /// Messages of 1 to 4 rows; every 50th row is bad.
  void write(int partition, int begin, int end) {
    std::vector<std::optional<std::string>> messages;
    while (begin < end) {
      std::string text;
      for (const int last = std::min(end, begin + 1 + static_cast<int>(random_() % 4));
           begin < last; ++begin) {
        text += begin % 50 == 0 ? "bad,row\n" : concat("1,", partition * kRows + begin, "\n");
      }
      messages.emplace_back(text);
    }
    broker_.write("clicks", partition, messages);
  }
  void write_all(int begin = 0, int end = kRows) {
    for (int partition = 0; partition < kPartitions; ++partition) write(partition, begin, end);
  }

  void start_loaders(int count) {
    for (int i = 0; i < count; ++i) {
      loaders_.push_back(
          std::make_unique<LoaderServer>(loader_end_, store_, LoaderServerOptions{1}));
    }
  }

  Loaders& rank_side() {
    rank_side_ = std::make_unique<Loaders>(token(), store_, "rank 0",
                                           LoadersOptions{.timeout_ms = kTimeoutMs,
                                                          .connect_ms = kTimeoutMs,
                                                          .look_every_ms = 10,
                                                          .stop = &stop_});
    return *rank_side_;
  }

  std::unique_ptr<data::BatchSource> open(const data::TopicPosition& start,
                                          data::ReadOptions options = {}) {
    options.batch_size = 7;
    options.start = {.next_row = start.row, .rows_read = start.row};
    const data::Schema schema = data::resolve_schema(config_);
    return data::open_batches(data::Dataset(config_).starting_at(start),
                              data::fixed_transforms(schema), data::Role::kTrain, options);
  }
  std::unique_ptr<data::BatchSource> open_by_loaders(const data::TopicPosition& start) {
    return open(start, {.stop = &stop_, .open_deliveries = rank_side().opener()});
  }

  /// Batches until there are so many rows, of which `last` is the greatest of each partition.
  void take(data::BatchSource& source, std::size_t num_rows) {
    data::Batch batch;
    while (ids_.size() < num_rows) {
      ASSERT_TRUE(source.next(batch));
      for (const std::uint64_t id : batch.ids) {
        EXPECT_TRUE(ids_.insert(id).second) << id << " came twice";
        std::uint64_t& last = last_of_partition_[id / kRows];
        EXPECT_LE(last, id) << "the order of the partition";
        last = id;
      }
    }
  }

  static constexpr std::size_t kGoodRows = kPartitions * kRows / 50 * 49;

  TemporaryDirectory folder_;
  data::MockBroker broker_;
  std::mt19937 random_{5};
  std::shared_ptr<net::FileRendezvous> store_;
  data::DataConfig config_;
  std::atomic<bool> stop_{false};
  net::Endpoint loader_end_{token()};
  std::vector<std::unique_ptr<LoaderServer>> loaders_;
  std::unique_ptr<Loaders> rank_side_;
  std::set<std::uint64_t> ids_;
  std::map<std::uint64_t, std::uint64_t> last_of_partition_;
};

TEST_F(TopicStreamsTest, LoadersReadEveryRowOnce) {
  write_all();
  start_loaders(2);
  const auto source = open_by_loaders(data::begin_topic(config_));
  take(*source, kGoodRows);
  EXPECT_EQ(ids_.size(), kGoodRows);
  EXPECT_EQ(source->position().next_row, kPartitions * kRows);
  EXPECT_EQ(source->stats().bad_rows, kPartitions * kRows / 50);
  EXPECT_EQ(source->stats().lag, 0);
  source->close();
}

TEST_F(TopicStreamsTest, APositionIsWhereAnyNumberOfLoadersOrNoneContinues) {
  write_all();
  data::TopicPosition place = data::begin_topic(config_);
  std::vector<std::size_t> numbers = {4000, 4001, 9000, 9900, 12000};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    loaders_.clear();
    start_loaders(static_cast<int>(i));
    const auto source = i == 0 ? open(place) : open_by_loaders(place);
    take(*source, numbers[i]);
    place = source->topic_position(source->position()).value();
    source->close();
  }
  const auto rest = open(place);
  take(*rest, kGoodRows);
  EXPECT_EQ(rest->topic_position(rest->position())->row, kPartitions * kRows);
  rest->close();
}

TEST_F(TopicStreamsTest, LoadersComeAndGo) {
  write_all();
  start_loaders(2);
  const auto source = open_by_loaders(data::begin_topic(config_));
  take(*source, 2000);
  loaders_.erase(loaders_.begin());
  take(*source, 5000);
  start_loaders(2);
  take(*source, 9000);
  loaders_.clear();
  start_loaders(1);
  take(*source, kGoodRows);
  source->close();
}

TEST_F(TopicStreamsTest, MoreLoadersThanPartitionsHaveNothingToDo) {
  write_all(0, 200);
  start_loaders(kPartitions + 2);
  const auto source = open_by_loaders(data::begin_topic(config_));
  take(*source, kPartitions * 200 / 50 * 49);
  write_all(200, kRows);
  take(*source, kGoodRows);
  source->close();
}

TEST_F(TopicStreamsTest, PartitionsOfAShareAreDividedToo) {
  write_all();
  start_loaders(2);
  data::TopicPosition place = data::begin_topic(config_);
  for (std::int64_t rank = 0; rank < 2; ++rank) {  // the partitions 0, 2, 4 and 1, 3
    const auto source = open_by_loaders(place.share_of_rank(rank, 2));
    take(*source, rank == 0 ? kGoodRows / 5 * 3 : kGoodRows);
    source->close();
  }
}

TEST_F(TopicStreamsTest, AStopEndsAWaitForMessages) {
  start_loaders(2);
  const auto source = open_by_loaders(data::begin_topic(config_));
  EXPECT_FALSE(source->wait(std::chrono::milliseconds(0)));
  stop_ = true;
  data::Batch batch;
  EXPECT_FALSE(source->next(batch));
}

TEST_F(TopicStreamsTest, ATopicOfBadRowsAloneIsToldOf) {
  broker_.write("clicks", 0, {"bad,1", "bad,2", "bad,3"});
  start_loaders(2);
  config_.on_bad_row = data::OnBadRow::kStop;
  const auto source = open_by_loaders(data::begin_topic(config_));
  data::Batch batch;
  try {
    source->next(batch);
    FAIL() << "a bad row was taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("partition 0, offset 0"));
  }
}

TEST_F(TopicStreamsTest, QuietLoadersTellThatNothingIsLeft) {
  write(2, 0, 100);  // of the other partitions, some of another loader's, nothing comes
  start_loaders(2);
  const auto source = open_by_loaders(data::begin_topic(config_));
  take(*source, 98);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  const auto told = [&] { return source->stats().lag == 0 && source->stats().time_ms >= 0; };
  while (!told() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(source->stats().lag, 0);
  EXPECT_GT(source->stats().time_ms, 0);
  source->close();
}

TEST_F(TopicStreamsTest, AMessageOfAnotherFormatInTheMiddleIsABadRow) {
  write(0, 0, 100);
  data::TopicPosition place = data::begin_topic(config_);
  {
    const auto source = open(place);
    take(*source, 98);
    place = source->topic_position(source->position()).value();
    source->close();
  }
  broker_.write("clicks", 0, {R"({"label": 1, "id": 5})"});
  write(0, 100, 200);
  start_loaders(1);
  const auto source = open_by_loaders(place);
  take(*source, 196);
  EXPECT_EQ(source->stats().bad_rows, 3);  // two of the rows
  source->close();
}

TEST_F(TopicStreamsTest, WhatALoaderCannotReadEndsTheRun) {
  write_all(0, 1);
  start_loaders(1);
  data::TopicPosition place = data::begin_topic(config_);
  place.partitions[3].next = 10;  // after the end
  const auto source = open_by_loaders(place);
  data::Batch batch;
  try {
    while (source->next(batch)) {
    }
    FAIL() << "the end of a topic that has none";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("loader/0: "));
  }
}

}  // namespace
}  // namespace satrap::loader
