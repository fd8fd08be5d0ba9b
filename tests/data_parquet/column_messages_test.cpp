// Messages of Arrow IPC and of Parquet in a topic.
#include "src/data/topic/column_messages.h"

#include <fstream>
#include <iterator>

#include <gmock/gmock.h>

#include "satrap/core/hash.h"
#include "src/data/topic/message_cutter.h"
#include "src/data/topic/message_parser.h"
#include "tests/data/fake_consumer.h"
#include "tests/data/parsed_rows.h"
#include "tests/data/text_files.h"
#include "tests/data_parquet/parquet_table.h"

namespace satrap::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Rows begin ... end - 1 of an endless table.
ParquetTable rows_of(std::int64_t begin, std::int64_t end) {
  Maybe<std::int64_t> users, labels;
  Maybe<std::string> cities;
  Maybe<double> prices;
  for (std::int64_t i = begin; i < end; ++i) {
    users.emplace_back(i);
    labels.emplace_back(i % 2);
    cities.push_back(i % 3 == 0 ? std::nullopt : std::optional(concat("city ", i % 7)));
    prices.emplace_back(0.25 * static_cast<double>(i));
  }
  return ParquetTable({{"user", int64s(users)},
                       {"city", strings(cities)},
                       {"price", array_of<arrow::DoubleBuilder>(prices)},
                       {"y", int64s(labels)}});
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<ParsedRow> parsed(std::int64_t begin, std::int64_t end, std::int64_t number = -1) {
  std::vector<ParsedRow> rows;
  for (std::int64_t i = begin; i < end; ++i) {
    ParsedRow& row = rows.emplace_back();
    row.number = number >= 0 ? number + i - begin : i;
    row.label = static_cast<float>(i % 2);
    row.numeric = {show(0.25F * static_cast<float>(i))};
    row.bags = {{static_cast<std::uint64_t>(i)}, {}};
    if (i % 3 != 0) row.bags[1] = {hash_bytes(concat("city ", i % 7))};
    row.weights.resize(2);
  }
  return rows;
}

class ColumnMessagesTest : public FilesTest {
 protected:
  ColumnMessagesTest() {
    DataConfig config = csv_config("kafka://b/clicks", {"price"}, {"user", "city"});
    config.format = DataFormat::kArrow;
    config.schema.features[0].type = IdType::kInt;
    schema_ = resolve_schema(config);
  }

  std::string ipc_file(std::int64_t begin, std::int64_t end, std::int64_t rows_per_batch) {
    return bytes_of(rows_of(begin, end)
                        .write_ipc(path_of("x.arrow"), rows_per_batch, arrow::Compression::ZSTD));
  }
  std::string parquet_file(std::int64_t begin, std::int64_t end, std::int64_t rows_per_group) {
    return bytes_of(rows_of(begin, end).write(path_of("x.parquet"), rows_per_group));
  }

  static TopicPosition start_of(const FakeTopic& topic, bool is_endless) {
    TopicPosition position{.topic = "clicks", .epoch = 0, .row = 0, .turn = 0, .partitions = {}};
    for (const auto& messages : topic) {
      position.partitions.push_back(
          {.end = is_endless ? TopicPosition::kNoEnd : messages.rbegin()->first + 1});
    }
    return position;
  }

  /// The rows from a position on, in blocks of about two messages; `log` may be null.
  std::vector<ParsedRow> read(const FakeTopic& topic,
                              const TopicPosition& start,
                              RowPass pass = {},
                              std::shared_ptr<TopicLog> log = nullptr) {
    std::atomic<bool> stop = false;
    auto consumer = std::make_unique<FakeConsumer>(topic);
    consumer->stop_at_wait = &stop;
    pass.stop = &stop;
    pass.first_row = std::max(pass.first_row, start.row);
    policy_ = std::make_shared<BadRowPolicy>(
        false, BadRowLimit(), [this](const std::string& line) { told_.push_back(line); });
    told_.clear();
    TextRows rows(
        std::make_unique<MessageCutter>(schema_, std::move(consumer), "kafka://b/clicks", start,
                                        pass,
                                        MessageCutter::Limits{.block_bytes = 2000, .wait_ms = 0},
                                        std::move(log), FileFormat::kArrow),
        [&] { return std::make_unique<MessageParser>(schema_, pass); }, pass, policy_);
    return all_rows(rows);
  }
  std::vector<ParsedRow> read(const FakeTopic& topic, const RowPass& pass = {}) {
    return read(topic, start_of(topic, false), pass);
  }

  Schema schema_;
  std::shared_ptr<BadRowPolicy> policy_;
  std::vector<std::string> told_;  // of bad rows
};

TEST_F(ColumnMessagesTest, RowsAreSelectedAsThoseOfFiles) {
  DataConfig config;
  config.train.where = "price >= 10 and city != '' and y = 0";
  const auto selection = RowSelection::of(config, Role::kTrain);
  schema_.selecting = selection->columns();
  std::vector<ParsedRow> expected;
  for (const ParsedRow& row : parsed(0, 100)) {
    if (row.number >= 40 && row.number % 3 != 0 && row.number % 2 == 0) expected.push_back(row);
  }
  const FakeTopic topic = {{{0, ipc_file(0, 50, 7)}, {1, parquet_file(50, 100, 7)}}};
  EXPECT_EQ(read(topic, {.selection = selection}), expected);
}

TEST_F(ColumnMessagesTest, AreStreamsAndFilesOfAnyNumberOfRows) {
  const FakeTopic topic = {{{0, rows_of(0, 1).ipc_stream()},
                            {1, rows_of(1, 129).ipc_stream()},
                            {2, rows_of(129, 129).ipc_stream()},
                            {3, std::nullopt},
                            {4, rows_of(129, 140).ipc_stream(3)},
                            {5, ipc_file(140, 150, 4)},
                            {6, parquet_file(150, 160, 4)},
                            {7, parquet_file(160, 10'160, 3000)},
                            {8, rows_of(10'160, 20'160).ipc_stream()}}};
  EXPECT_EQ(read(topic), parsed(0, 20'160));
  EXPECT_EQ(read(topic, {.num_threads = 3}), parsed(0, 20'160));
  EXPECT_EQ(policy_->count(), 0);
  EXPECT_EQ(read(topic, {.max_rows = 133}), parsed(0, 133));
  EXPECT_EQ(read({{{0, rows_of(0, 0).ipc_stream()}}}), parsed(0, 0));
}

TEST_F(ColumnMessagesTest, AreDividedAmongRanksByRows) {
  const FakeTopic topic = {{{0, rows_of(0, 25).ipc_stream(10)}, {1, parquet_file(25, 60, 9)}}};
  std::vector<ParsedRow> all;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const auto mine = read(topic, {.split = {.rank = rank, .world_size = 3, .rows_per_turn = 7}});
    EXPECT_GE(mine.size(), 18U);
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::ranges::sort(all, {}, &ParsedRow::number);
  EXPECT_EQ(all, parsed(0, 60));
}

TEST_F(ColumnMessagesTest, AreDividedAmongStreamsWhoseTurnsEndWithinMessages) {
  const FakeTopic topic = {{{0, rows_of(0, 25).ipc_stream(10)}, {1, parquet_file(25, 60, 9)}},
                           {{0, "not columns"}, {1, ipc_file(61, 90, 4)}}};
  auto expected = parsed(0, 60);
  for (const ParsedRow& row : parsed(61, 90)) expected.push_back(row);
  for (const std::int64_t count : {1, 2, 5}) {
    std::vector<ParsedRow> all;
    std::int64_t bad = 0;
    for (std::int64_t number = 0; number < count; ++number) {
      const auto mine = read(
          topic, {.split = {.stream = {.number = number, .count = count, .rows_per_turn = 7}}});
      all.insert(all.end(), mine.begin(), mine.end());
      bad += policy_->count();
    }
    std::ranges::sort(all, {}, &ParsedRow::number);
    EXPECT_EQ(all, expected) << count;
    EXPECT_EQ(bad, 1);
  }
}

TEST_F(ColumnMessagesTest, APassContinuesAtAnyRowOfAMessage) {
  const FakeTopic topic = {{{0, rows_of(0, 5).ipc_stream(2)},
                            {1, "not columns"},
                            {2, parquet_file(100, 107, 3)},
                            {3, ipc_file(200, 204, 3)}},
                           {{0, rows_of(300, 306).ipc_stream()}}};
  for (const bool is_endless : {false, true}) {
    const TopicPosition start = start_of(topic, is_endless);
    const auto all = read(topic, start);
    ASSERT_EQ(all.size(), 22U);
    for (std::int64_t next = 1; next < 23; ++next) {
      const auto log = std::make_shared<TopicLog>(start);
      read(topic, start, {}, log);
      const TopicPosition at = log->at({.epoch = 0, .batches = 1, .next_row = next});
      const auto first =
          std::ranges::find_if(all, [&](const ParsedRow& row) { return row.number >= next; });
      EXPECT_EQ(read(topic, at, {.first_row = next}), std::vector<ParsedRow>(first, all.end()))
          << next << (is_endless ? " endless" : "");
    }
  }
}

TEST_F(ColumnMessagesTest, WhichNegativesAreReadDoesNotDependOnWhereReadingBegan) {
  FakeTopic topic(1);
  for (std::int64_t m = 0; m < 20; ++m) {
    topic[0][m] =
        m % 2 == 0 ? parquet_file(10 * m, 10 * m + 10, 4) : ipc_file(10 * m, 10 * m + 10, 7);
  }
  schema_.of_training = true;
  schema_.negatives_read = 0.5;
  const auto labels_and_ids = [](const std::vector<ParsedRow>& rows) {
    std::vector<std::pair<float, std::uint64_t>> found;
    for (const ParsedRow& row : rows) found.emplace_back(row.label, row.bags[0][0]);
    return found;
  };
  TopicPosition start = start_of(topic, false);
  const auto all = labels_and_ids(read(topic, start));
  EXPECT_GT(all.size(), 120U);
  EXPECT_LT(all.size(), 180U);
  start.partitions[0].next = 5;  // another job, whose rows have other numbers
  const auto rest = labels_and_ids(read(topic, start));
  const auto first = std::ranges::find_if(all, [](const auto& row) { return row.second >= 50; });
  EXPECT_TRUE(std::equal(first, all.end(), rest.begin(), rest.end()));
}

TEST_F(ColumnMessagesTest, ThoseThatCannotBeReadAreBadRowsThatAreNamed) {
  const std::string whole = rows_of(0, 3).ipc_stream();
  const ParquetTable other({{"user", int64s({7})}, {"y", int64s({1})}, {"city", strings({"a"})}});
  const ParquetTable text(
      {{"user", int64s({7})},
       {"y", int64s({1})},
       {"city", strings({"a"})},
       {"price", lists_of<arrow::Int32Builder, std::int32_t>({Maybe<std::int32_t>{1, 2}})}});
  const FakeTopic topic = {{{0, whole},
                            {1, "1,2,3"},
                            {2, ""},
                            {3, whole.substr(0, whole.size() / 2)},
                            {4, whole + whole},
                            {5, other.ipc_stream()},
                            {6, text.ipc_stream()},
                            {7, parquet_file(0, 3, 9).substr(0, 60)},
                            {8, rows_of(10, 12).ipc_stream()}}};
  auto expected = parsed(0, 3), rest = parsed(10, 12, 10);
  expected.insert(expected.end(), rest.begin(), rest.end());
  EXPECT_EQ(read(topic), expected);
  EXPECT_EQ(policy_->count(), 7);
  EXPECT_THAT(policy_->reasons(), ElementsAre(std::pair("a message that cannot be read", 7)));
  const auto at = [](int offset, const char* why) {
    return AllOf(HasSubstr(concat("kafka://b/clicks, partition 0, offset ", offset)),
                 HasSubstr(why));
  };
  ASSERT_GE(told_.size(), 7U);
  EXPECT_THAT(std::vector(told_.begin(), told_.begin() + 7),
              ElementsAre(at(1, "neither a Parquet file nor an Arrow file or stream"),
                          at(2, "it begins with neither"), at(3, "cannot be read"),
                          at(4, "follow its end"), at(5, "'price'"),
                          at(6, "a list is read as ids alone"), at(7, "is an incomplete Parquet")));
}

TEST_F(ColumnMessagesTest, ABadValueIsNamedByItsRowInTheMessage) {
  const ParquetTable table({{"user", int64s({1, 2, 3})},
                            {"y", int64s({1, 7, 0})},
                            {"city", strings({"a", "b", "c"})},
                            {"price", int64s({1, 2, 3})}});
  EXPECT_EQ(read({{{4, rows_of(0, 2).ipc_stream()}, {9, table.ipc_stream(1)}}}).size(), 4U);
  EXPECT_THAT(told_, ::testing::Contains(
                         HasSubstr("kafka://b/clicks, partition 0, offset 9: row 2: column 'y'")));
}

/// Reads one message, without threads; returns the good rows.
class OneMessage {
 public:
  explicit OneMessage(const Schema& schema) : taker_(schema, "clicks"), parser_(schema, {}) {}

  std::vector<ParsedRow> read(const std::string& bytes) {
    std::int64_t to_skip = 0;
    TextBlock block;
    taker_.take({.offset = 1, .value = bytes.data(), .size = std::ssize(bytes), .time_ms = -1},
                "clicks, partition 0", to_skip, block);
    parser_.parse(block, rows_, bad_);
    std::vector<ParsedRow> good;
    append_rows(rows_, good);
    EXPECT_EQ(std::ssize(good) + bad_.count, block.num_lines);
    return good;
  }

 private:
  ColumnMessages taker_;
  MessageParser parser_;
  RowBlock rows_;
  BadRows bad_;
};

TEST_F(ColumnMessagesTest, NoDamageDoesHarmBeyondItsRows) {
  OneMessage reader(schema_);
  for (const std::string& whole :
       {rows_of(0, 9).ipc_stream(4), ipc_file(0, 9, 4), parquet_file(0, 9, 4)}) {
    ASSERT_EQ(reader.read(whole), parsed(0, 9));
    for (std::size_t size = 0; size < whole.size(); size += 7) {
      const auto rows = reader.read(whole.substr(0, size));
      ASSERT_EQ(rows, parsed(0, std::ssize(rows))) << "cut after " << size << " bytes";
    }
    for (std::size_t at = 0; at < whole.size(); at += 5) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(~flipped[at]);
      reader.read(flipped);
      ASSERT_EQ(reader.read(whole), parsed(0, 9)) << "after a flip of byte " << at;
    }
  }
}

}  // namespace
}  // namespace satrap::data
