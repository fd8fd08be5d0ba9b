#include "satrap/table/whole_rows.h"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace satrap::table {
namespace {

using Row = std::vector<std::byte>;
using Keys = std::vector<Key>;

TableSpec whole_spec() {
  TableSpec spec;
  spec.name = "user";
  spec.id = TableId{2};
  spec.dim = 3;
  return spec;
}

Keys ascending_keys(std::initializer_list<std::uint64_t> ids) {
  Keys keys;
  for (const std::uint64_t id : ids) keys.push_back(make_key(TableId{2}, id));
  std::ranges::sort(keys);
  return keys;
}

RowHeader header_of(const Row& row) {
  RowHeader header;
  std::memcpy(&header, row.data(), sizeof(header));
  return header;
}

/// A row of a key that no table made: every byte after the header is `fill`.
Row made_row(const Table& table, Key key, std::uint32_t last_step, std::uint8_t fill) {
  Row row(static_cast<std::size_t>(table.row_bytes()), static_cast<std::byte>(fill));
  const RowHeader header{.key = key, .last_step = last_step, .count = 1};
  std::memcpy(row.data(), &header, sizeof(header));
  return row;
}

class WholeRowsTest : public testing::Test {
 protected:
  std::vector<Row> fetch(const Keys& keys) {
    std::vector<Row> fetched(keys.size(), Row(static_cast<std::size_t>(table_.row_bytes())));
    fetch_rows(table_, 1, keys, [&](std::size_t i) { return fetched.at(i).data(); });
    return fetched;
  }
  std::int64_t put(const Keys& keys, const std::vector<Row>& from) {
    return put_rows(table_, 1, 1, keys, [&](std::size_t i) { return from.at(i).data(); });
  }

  Table table_{whole_spec(), 1};
};

TEST_F(WholeRowsTest, OfNoKeysThereIsNothing) {
  EXPECT_TRUE(fetch({}).empty());
  EXPECT_EQ(put({}, {}), 0);
  EXPECT_EQ(table_.num_rows(), 0);
}

TEST_F(WholeRowsTest, MissingRowsAreCreatedWithTheirInitialWeights) {
  const Keys keys = ascending_keys({7, 8});
  const std::vector<Row> fetched = fetch(keys);
  EXPECT_EQ(table_.num_rows(), 2);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Row expected(static_cast<std::size_t>(table_.row_bytes()));
    table_.initialize_row(keys[i], expected.data());
    EXPECT_EQ(fetched[i], expected);
  }
}

TEST_F(WholeRowsTest, WhatWasPutIsFetched) {
  const Keys keys = ascending_keys({1, 2, 3});
  std::vector<Row> from;
  for (const Key key : keys) from.push_back(made_row(table_, key, 5, 0x41));
  put(keys, from);
  EXPECT_EQ(fetch(keys), from);
  EXPECT_EQ(table_.num_rows(), 3);
}

TEST_F(WholeRowsTest, PutReplacesOnlyItsRows) {
  const Keys keys = ascending_keys({1, 2});
  const std::vector<Row> before = fetch(keys);
  const Row other = made_row(table_, keys[0], 5, 0x41);
  put({keys[0]}, {other});
  EXPECT_EQ(fetch(keys), (std::vector<Row>{other, before[1]}));
}

TEST_F(WholeRowsTest, PutGivesTheHighestLastStep) {
  const Keys keys = ascending_keys({1, 2, 3});
  const auto put_steps = [&](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return put(keys, {made_row(table_, keys[0], a, 0), made_row(table_, keys[1], b, 0),
                      made_row(table_, keys[2], c, 0)});
  };
  EXPECT_EQ(put_steps(3, 9, 5), 9);
  EXPECT_EQ(put_steps(0, 0, 0), 0);
  EXPECT_EQ(put_steps(0, 0, 0xFFFFFFFF), 0xFFFFFFFF);
}

TEST_F(WholeRowsTest, ManyRowsInAnyCallsAreThoseOfAMap) {
  std::mt19937_64 random(1);
  std::map<Key, Row> expected;
  for (int call = 0; call < 20; ++call) {
    Keys keys;
    for (std::uint64_t i = random() % 2000; i-- > 0;) {
      keys.push_back(make_key(TableId{2}, random() % 5000));
    }
    std::ranges::sort(keys);
    keys.erase(std::ranges::unique(keys).begin(), keys.end());
    if (call % 2 == 0) {
      std::vector<Row> from;
      std::uint32_t highest = 0;
      for (const Key key : keys) {
        const auto step = static_cast<std::uint32_t>(random() % 1000);
        highest = std::max(highest, step);
        from.push_back(made_row(table_, key, step, static_cast<std::uint8_t>(random())));
        expected[key] = from.back();
      }
      ASSERT_EQ(put(keys, from), highest);
    } else {
      const std::vector<Row> fetched = fetch(keys);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        ASSERT_EQ(header_of(fetched[i]).key, keys[i]);
        ASSERT_EQ(expected.try_emplace(keys[i], fetched[i]).first->second, fetched[i]);
      }
    }
  }
  EXPECT_EQ(table_.num_rows(), std::ssize(expected));
}

}  // namespace
}  // namespace satrap::table
