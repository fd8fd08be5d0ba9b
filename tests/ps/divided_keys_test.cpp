#include "src/ps/divided_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/table/sharding.h"

namespace satrap::ps {
namespace {

using testing::HasSubstr;

/// A key of a table whose mixed id is at `fraction` 64ths of the range.
Key key_at(std::uint64_t table, std::uint64_t fraction) {
  return static_cast<Key>((table << kIdBits) | (fraction << (kIdBits - 6)));
}

class DividedKeysTest : public testing::Test {
 protected:
  std::string problem(const std::vector<Key>& keys) {
    try {
      divided_.assign(layout_, keys);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidData);
      return error.what();
    }
    return "";
  }
  std::pair<std::int64_t, std::int64_t> part(std::int64_t table, std::int64_t worker) const {
    const DividedKeys::Range range = divided_.part(table, worker);
    return {range.begin, range.end};
  }
  using Part = std::pair<std::int64_t, std::int64_t>;

  ShardLayout layout_{.num_workers = 2, .dims = {4, 2}};
  DividedKeys divided_;
};

TEST_F(DividedKeysTest, NoKeysAreNobodys) {
  EXPECT_EQ(problem({}), "");
  EXPECT_EQ(part(0, 0), Part(0, 0));
  EXPECT_EQ(part(1, 1), Part(0, 0));
  EXPECT_EQ(divided_.num_values(), 0);
}

TEST_F(DividedKeysTest, EachWorkerHasItsPartitionsOfEveryTable) {
  EXPECT_EQ(problem({key_at(0, 0), key_at(0, 31), key_at(0, 32), key_at(1, 63)}), "");
  EXPECT_EQ(part(0, 0), Part(0, 2));
  EXPECT_EQ(part(0, 1), Part(2, 3));
  EXPECT_EQ(part(1, 0), Part(3, 3));
  EXPECT_EQ(part(1, 1), Part(3, 4));
}

TEST_F(DividedKeysTest, ValuesOfATableStandTogether) {
  EXPECT_EQ(problem({key_at(0, 0), key_at(0, 1), key_at(1, 0), key_at(1, 1)}), "");
  EXPECT_EQ(divided_.value_begin(0, 1, 4), 4);
  EXPECT_EQ(divided_.value_begin(1, 2, 2), 8);
  EXPECT_EQ(divided_.value_begin(1, 3, 2), 10);
  EXPECT_EQ(divided_.num_values(), 12);
}

TEST_F(DividedKeysTest, ARequestAfterAnotherForgetsIt) {
  problem({key_at(0, 0), key_at(1, 40)});
  EXPECT_EQ(problem({key_at(1, 1)}), "");
  EXPECT_EQ(std::ssize(divided_.keys()), 1);
  EXPECT_EQ(part(0, 0), Part(0, 0));
  EXPECT_EQ(part(1, 0), Part(0, 1));
  EXPECT_EQ(divided_.num_values(), 2);
}

TEST_F(DividedKeysTest, KeysThatDoNotAscendAreRefused) {
  EXPECT_NE(problem({key_at(0, 2), key_at(0, 1)}), "");
  EXPECT_NE(problem({key_at(0, 1), key_at(0, 1)}), "");
}

TEST_F(DividedKeysTest, KeysOfATableThatThereIsNotAreRefused) {
  EXPECT_THAT(problem({key_at(2, 0)}), HasSubstr("table"));
}

TEST_F(DividedKeysTest, KeysOfAnotherShardAreRefused) {
  layout_.num_shards = 2;
  layout_.shard = 1;
  EXPECT_EQ(problem({key_at(0, 32), key_at(0, 63)}), "");
  EXPECT_EQ(part(0, 0), Part(0, 1));  // partitions divide the shard's range
  EXPECT_EQ(part(0, 1), Part(1, 2));
  EXPECT_THAT(problem({key_at(0, 31)}), HasSubstr("shard"));
}

}  // namespace
}  // namespace satrap::ps
