#include "src/table/row_index.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace satrap::table {
namespace {

/// An index of partition 0 of the only shard, with the rows that it contains.
class RowIndexTest : public testing::Test {
 protected:
  /// A key of the partition with chosen lower bits: its position in the index follows from them.
  static Key key(std::uint64_t low_bits) { return static_cast<Key>(low_bits); }

  void insert(Key key) {
    const auto number = static_cast<std::int64_t>(num_rows_++);
    index_.reserve(key, arena_);
    header_of(arena_.add(number)).key = key;
    index_.insert(key, number);
    numbers_[key] = number;
  }
  void erase(Key key) {
    index_.erase(key, numbers_.at(key));
    numbers_.erase(key);
  }
  RowPointer find(Key key) const { return index_.find(key, position_in_shard(key, 1), arena_); }

  bool has(Key key) const { return find(key) != nullptr && header_of(find(key)).key == key; }

  RowArena arena_{16};
  RowIndex index_{0, 1};
  std::map<Key, std::int64_t> numbers_;
  std::size_t num_rows_ = 0;
};

TEST_F(RowIndexTest, AnEmptyOneHasNoKey) {
  index_.reserve(key(1), arena_);
  EXPECT_EQ(find(key(1)), nullptr);
  EXPECT_EQ(index_.candidate(key(1), position_in_shard(key(1), 1), arena_), nullptr);
}

TEST_F(RowIndexTest, FindsWhatWasInsertedAndNothingElse) {
  insert(key(1));
  insert(key(2));
  EXPECT_EQ(find(key(1)), arena_.row(0));
  EXPECT_EQ(find(key(2)), arena_.row(1));
  EXPECT_EQ(find(key(3)), nullptr);
}

TEST_F(RowIndexTest, KeysOfOneTagAndPlaceAreToldApartByTheirRows) {
  insert(key(0x100));
  insert(key(0x200));
  EXPECT_EQ(find(key(0x200)), arena_.row(1));
  EXPECT_EQ(find(key(0x300)), nullptr);
  EXPECT_EQ(index_.candidate(key(0x300), position_in_shard(key(0x300), 1), arena_), arena_.row(0));
}

TEST_F(RowIndexTest, AnErasedKeyIsGoneAndThoseBehindItStay) {
  for (const std::uint64_t low : {0x100, 0x200, 0x300}) insert(key(low));
  erase(key(0x200));
  EXPECT_TRUE(has(key(0x100)));
  EXPECT_EQ(find(key(0x200)), nullptr);
  EXPECT_TRUE(has(key(0x300)));
  insert(key(0x200));
  EXPECT_EQ(find(key(0x200)), arena_.row(3));
}

TEST_F(RowIndexTest, ErasingTheLastLeavesAnEmptyOne) {
  insert(key(7));
  erase(key(7));
  EXPECT_EQ(find(key(7)), nullptr);
  insert(key(7));
  EXPECT_TRUE(has(key(7)));
}

TEST_F(RowIndexTest, SlotsOfErasedKeysAreUsedAgain) {
  insert(key(1));
  for (std::uint64_t i = 0; i < 5000; ++i) {
    insert(key(2 + i));
    erase(key(1 + i));
  }
  EXPECT_TRUE(has(key(5001)));
  EXPECT_LE(index_.resident_bytes(), 64 << 10);
}

TEST_F(RowIndexTest, GrowsAndSplitsAsAMapWould) {
  std::mt19937_64 random(3);
  const std::int64_t first_bytes = index_.resident_bytes();
  for (std::int64_t i = 0; i < 300'000; ++i) {  // more than one segment holds
    // Bits below those of the partition; some keys crowd in one place.
    const std::uint64_t bits = random() >> (64 - kIdBits + kPartitionBits);
    const Key chosen = key(i % 64 == 0 ? bits & 0xFFFF : bits);
    const auto known = numbers_.find(chosen);
    if (known == numbers_.end()) {
      ASSERT_EQ(find(chosen), nullptr);
      insert(chosen);
    } else if (i % 3 == 0) {
      erase(chosen);
    }
  }
  ASSERT_GT(std::ssize(numbers_), RowIndex::kMaxEntries);
  EXPECT_GT(index_.resident_bytes(), first_bytes);
  for (const auto& [known, number] : numbers_) ASSERT_EQ(find(known), arena_.row(number));
}

}  // namespace
}  // namespace satrap::table
