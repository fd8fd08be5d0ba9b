#include "satrap/data/row_deliveries.h"

#include <cstddef>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

class RowDeliveriesTest : public FilesTest {
 protected:
  RowDeliveriesTest() { config_ = csv_config("none.csv", {"n"}, {"s"}); }

  RowDelivery delivery() const {
    RowDelivery delivery;
    delivery.rows.clear(1, 1);
    delivery.rows.num_rows = 2;
    delivery.rows.row_numbers = {7, 9};
    delivery.rows.labels = {1.0F, 0.0F};
    delivery.rows.numeric = {{0.5F, -2.0F}};
    delivery.rows.bags[0] = {.offsets = {0, 0, 1}, .ids = {42}, .weights = {}};
    delivery.bad = {.count = 3, .messages = {"a.csv:9: bad"}, .reasons = {{"bad", 2}, {"", 1}}};
    delivery.end_row = 11;
    delivery.stats = {.bytes = 100, .epoch_rows = 12.5};
    delivery.files = {{1,
                       {.path = "",
                        .bytes = 5,
                        .modified_ns = -1,
                        .checksum = "c0",
                        .first_row = 3,
                        .num_rows = -1}}};
    return delivery;
  }

  static std::vector<std::byte> bytes_of(const RowDelivery& delivery) {
    std::vector<std::byte> bytes;
    append(delivery, bytes);
    return bytes;
  }

  DataConfig config_;
};

TEST_F(RowDeliveriesTest, BytesGiveTheDelivery) {
  const Schema schema = resolve_schema(config_);
  const RowDelivery sent = delivery();
  RowDelivery got;
  got.is_end = true;
  read(bytes_of(sent), schema, got);
  EXPECT_EQ(got.rows.row_numbers, sent.rows.row_numbers);
  EXPECT_EQ(got.rows.labels, sent.rows.labels);
  EXPECT_EQ(got.rows.numeric, sent.rows.numeric);
  EXPECT_EQ(got.rows.bags[0].ids, sent.rows.bags[0].ids);
  EXPECT_EQ(got.rows.bags[0].offsets, sent.rows.bags[0].offsets);
  EXPECT_EQ(got.bad.count, 3);
  EXPECT_EQ(got.bad.messages, sent.bad.messages);
  EXPECT_EQ(got.bad.reasons, sent.bad.reasons);
  EXPECT_EQ(got.end_row, 11);
  EXPECT_EQ(got.stats.bytes, 100);
  EXPECT_EQ(got.stats.epoch_rows, 12.5);
  EXPECT_EQ(got.files, sent.files);
  EXPECT_FALSE(got.is_end);
}

TEST_F(RowDeliveriesTest, TheEndHasNoRows) {
  RowDelivery got = delivery(), end;
  end.is_end = true;
  read(bytes_of(end), resolve_schema(config_), got);
  EXPECT_TRUE(got.is_end);
  EXPECT_EQ(got.rows.num_rows, 0);
  EXPECT_EQ(got.bad.count, 0);
  EXPECT_TRUE(got.files.empty());
}

TEST_F(RowDeliveriesTest, TruncatedBytesAreAnErrorUnlessTheyEndBeforeTheRows) {
  const Schema schema = resolve_schema(config_);
  const std::vector<std::byte> whole = bytes_of(delivery());
  RowDelivery without_rows = delivery();
  without_rows.rows.num_rows = 0;
  const std::size_t before_rows = bytes_of(without_rows).size();
  RowDelivery got;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto bytes = std::span(whole).first(size);
    if (size == before_rows) {
      EXPECT_NO_THROW(read(bytes, schema, got));
    } else {
      EXPECT_THROW(read(bytes, schema, got), Error) << size;
    }
  }
}

TEST_F(RowDeliveriesTest, WrongBytesDoNoHarm) {
  const Schema schema = resolve_schema(config_);
  const std::vector<std::byte> whole = bytes_of(delivery());
  RowDelivery got;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::vector<std::byte> wrong = whole;
    wrong[i] ^= std::byte{0xFF};
    try {
      read(wrong, schema, got);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.what();
    }
  }
}

TEST_F(RowDeliveriesTest, RowsOfOtherColumnsAreAnError) {
  config_ = csv_config("none.csv", {}, {"s"});
  RowDelivery got;
  EXPECT_THROW(read(bytes_of(delivery()), resolve_schema(config_), got), Error);
}

/// The numbers of the rows of all deliveries, and of the bad ones behind them.
TEST_F(RowDeliveriesTest, StreamsHaveAllRowsAndBadOnesOnce) {
  config_ = csv_config(write("a.csv", "y,n,s\n1,1,a\n0,x,b\n1,2,c\n1,x,d\n\n0,3,e\n1,x,f\n"), {"n"},
                       {"s"});
  std::vector<std::int64_t> rows;
  std::int64_t num_bad = 0;
  for (std::int64_t stream = 0; stream < 3; ++stream) {
    RowPass pass;
    pass.split.stream = {.number = stream, .count = 3, .rows_per_turn = 2};
    const auto deliveries = open_deliveries(Dataset(config_), pass);
    RowDelivery got;
    std::int64_t end_row = 0;
    while (deliveries->next(got) && !got.is_end) {
      for (std::int64_t r = 0; r < got.rows.num_rows; ++r) rows.push_back(got.rows.row_number(r));
      num_bad += got.bad.count;
      EXPECT_GT(got.end_row, end_row);
      end_row = got.end_row;
      EXPECT_TRUE(pass.split.stream.owns(end_row - 1)) << "ends with its turn";
    }
    EXPECT_TRUE(got.is_end);
  }
  std::ranges::sort(rows);
  EXPECT_EQ(rows, (std::vector<std::int64_t>{0, 2, 5}));
  EXPECT_EQ(num_bad, 3);
}

TEST(RowStream, TurnsGoRound) {
  const RowStream stream{.number = 1, .count = 3, .rows_per_turn = 4};
  for (std::int64_t row = 0; row < 100; ++row) {
    EXPECT_EQ(stream.owns(row), row / 4 % 3 == 1) << row;
    EXPECT_EQ(stream.turn_end(row), row / 4 * 4 + 4) << row;
    std::int64_t last = row;
    while (!stream.owns(last) || stream.owns(last + 1)) ++last;
    EXPECT_EQ(stream.own_end(row), last + 1) << row;
  }
  EXPECT_TRUE(RowStream{}.owns(77));
  EXPECT_EQ(RowStream{}.own_end(77), INT64_MAX);
}

TEST(RowSplit, AStreamIsOfTheRanksRows) {
  const RowSplit split{.rank = 1,
                       .world_size = 2,
                       .rows_per_turn = 3,
                       .stream = {.number = 0, .count = 2, .rows_per_turn = 6}};
  for (std::int64_t row = 0; row < 60; ++row) {
    const bool owns = row / 3 % 2 == 1 && row / 6 % 2 == 0;
    EXPECT_EQ(split.owns(row), owns) << row;
    for (std::int64_t r = row; r < row + split.run(row); ++r) EXPECT_EQ(split.owns(r), owns) << r;
  }
}

}  // namespace
}  // namespace satrap::data
