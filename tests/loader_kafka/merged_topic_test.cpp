// A topic with an end that loaders read, from librdkafka's mock broker.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/data/open_rows.h"
#include "satrap/data/topic.h"
#include "satrap/loader/loader_server.h"
#include "satrap/loader/loaders.h"
#include "satrap/net/file_rendezvous.h"
#include "src/loader/merged_streams.h"
#include "tests/data_kafka/mock_broker.h"
#include "tests/support/temporary_directory.h"

namespace satrap::loader {
namespace {

constexpr int kTopicPartitions = 3;
constexpr std::int64_t kWaitMs = 300'000;

class MergedTopicTest : public testing::Test {
 protected:
  MergedTopicTest() : store_(std::make_shared<net::FileRendezvous>(folder_.path() + "/store")) {
    config_.train.path = {broker_.url("clicks")};
    config_.schema.header = false;
    config_.schema.columns = {"label", "id"};
    config_.schema.features = {data::FeatureConfig{.name = "id", .type = data::IdType::kInt}};
    config_.kafka.timeout = "10min";
    broker_.create("clicks", kTopicPartitions);
    for (int partition = 0; partition < kTopicPartitions; ++partition) write(partition);
  }

  /// Messages of 1 to 4 rows, some bad, and one of 500 in the middle: of several turns of loaders.
  void write(int partition) {
    std::vector<std::optional<std::string>> messages;
    for (int i = 0; i < 1200; ++i) {
      std::string text;
      for (std::uint32_t n = i == 700 ? 500 : 1 + random_() % 4; n > 0; --n, ++rows_) {
        text += rows_ % 50 == 0 ? "bad,row\n" : concat("1,", rows_, "\n");
      }
      messages.emplace_back(text);
    }
    messages[900].reset();
    broker_.write("clicks", partition, messages);
  }

  void start_loaders(int count) {
    for (int i = 0; i < count; ++i) {
      loaders_.push_back(
          std::make_unique<LoaderServer>(loader_end_, store_, LoaderServerOptions{1}));
    }
  }

  struct Rest {
    std::vector<std::uint64_t> ids;
    std::int64_t bad_rows = 0, next_row = 0;
    bool operator==(const Rest&) const = default;
  };

  /// `place`: where a topic position says; `by_loaders`: else this process reads.
  std::unique_ptr<data::BatchSource> open(bool by_loaders,
                                          const data::TopicPosition& place,
                                          data::ReadOptions options = {}) {
    options.batch_size = 7;
    if (by_loaders) {
      rank_side_ =
          std::make_unique<Loaders>(net::EndpointOptions{.token = "secret"}, store_, "rank 0",
                                    LoadersOptions{.timeout_ms = kWaitMs,
                                                   .connect_ms = kWaitMs,
                                                   .look_every_ms = 10,
                                                   .rows_per_turn = 64});
      options.open_deliveries = rank_side_->opener();
    }
    const data::Schema schema = data::resolve_schema(config_);
    return data::open_batches(data::Dataset(config_).starting_at(place),
                              data::fixed_transforms(schema), data::Role::kTrain, options);
  }

  static void take(data::BatchSource& source, std::vector<std::uint64_t>& ids, std::size_t most) {
    data::Batch batch;
    while (ids.size() < most && source.next(batch)) {
      ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
    }
  }

  static Rest rest_of(data::BatchSource& source, std::vector<std::uint64_t> ids = {}) {
    take(source, ids, SIZE_MAX);
    return {std::move(ids), source.stats().bad_rows, source.position().next_row};
  }

  TemporaryDirectory folder_;
  data::MockBroker broker_;
  std::mt19937 random_{5};
  int rows_ = 0;
  std::shared_ptr<net::FileRendezvous> store_;
  data::DataConfig config_;
  net::Endpoint loader_end_{net::EndpointOptions{.token = "secret"}};
  std::vector<std::unique_ptr<LoaderServer>> loaders_;
  std::unique_ptr<Loaders> rank_side_;
};

TEST_F(MergedTopicTest, BatchesAreThoseOfLocalReading) {
  const data::TopicPosition begin = data::begin_topic(config_);
  for (const std::int64_t ranks : {1, 2}) {
    const data::ReadOptions options{.rank = ranks - 1, .world_size = ranks, .epochs = 2};
    const Rest expected = rest_of(*open(false, begin, options));
    EXPECT_GT(expected.ids.size(), 9000U / static_cast<std::size_t>(ranks));
    loaders_.clear();
    for (int count = 1; count <= 3; ++count) {
      start_loaders(1);
      EXPECT_EQ(rest_of(*open(true, begin, options)), expected) << count << " loaders";
    }
  }
}

TEST_F(MergedTopicTest, APositionIsWhereAnyNumberOfLoadersOrNoneContinues) {
  const data::TopicPosition begin = data::begin_topic(config_);
  const std::vector<std::uint64_t> expected = rest_of(*open(false, begin)).ids;
  data::TopicPosition place = begin;
  data::ReadOptions options;
  std::vector<std::uint64_t> ids;
  for (const int count : {2, 0, 3, 1, 0, 2}) {
    loaders_.clear();
    start_loaders(count);
    const auto source = open(count > 0, place, options);
    take(*source, ids, ids.size() + 1300);
    options.start = source->position();
    place = source->topic_position(options.start).value();
    EXPECT_LE(place.row, options.start.next_row);
    source->close();
  }
  EXPECT_GT(place.row, 5000) << "what was read long ago is not read again";
  EXPECT_EQ(rest_of(*open(false, place, options), ids).ids, expected);
}

TEST_F(MergedTopicTest, LoadersComeAndGo) {
  const data::TopicPosition begin = data::begin_topic(config_);
  const Rest expected = rest_of(*open(false, begin));
  start_loaders(2);
  const auto source = open(true, begin);
  std::vector<std::uint64_t> ids;
  take(*source, ids, 1000);
  loaders_.erase(loaders_.begin());
  take(*source, ids, 3000);
  start_loaders(2);
  take(*source, ids, 5000);
  loaders_.clear();
  start_loaders(1);
  take(*source, ids, 6000);
  const data::DataPosition position = source->position();
  const data::TopicPosition place = source->topic_position(position).value();
  EXPECT_EQ(rest_of(*source, ids), expected);
  EXPECT_EQ(rest_of(*open(false, place, {.start = position}), ids).ids, expected.ids);
}

}  // namespace
}  // namespace satrap::loader
