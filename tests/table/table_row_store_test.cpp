#include "satrap/table/table_row_store.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/thread_pool.h"

namespace satrap::table {
namespace {

/// Two tables, of which a test decides how many blocks may be registered.
class LocatedRows : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRowBytes = 16 + 12 * 4;

  void SetUp() override {
    for (int i = 0; i < 2; ++i) {
      TableSpec spec;
      spec.name = i == 0 ? "a" : "b";
      spec.id = TableId{static_cast<std::uint16_t>(i)};
      spec.dim = 12;
      spec.optimizer.type = RowOptimizerType::kSgd;
      tables_.push_back(std::make_unique<Table>(spec, 5));
    }
    ASSERT_EQ(tables_[0]->row_bytes(), kRowBytes);
    store_ = std::make_unique<TableRowStore>(
        std::vector<Table*>{tables_[0].get(), tables_[1].get()}, pool_);
  }
  void TearDown() override {
    tables_.clear();
    EXPECT_TRUE(blocks_.empty()) << "registrations end with their table";
  }

  void register_blocks(std::int64_t most) {
    for (const auto& table : tables_) {
      table->register_blocks([this, most](std::byte* pages, std::int64_t bytes) {
        const std::lock_guard lock(mutex_);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages) % 4096, 0);
        EXPECT_EQ(bytes % 4096, 0);
        std::memset(pages + bytes - 1, 0, 1);  // it is there
        if (num_asked_++ >= most) return std::shared_ptr<void>();
        blocks_[pages] = bytes;
        return std::shared_ptr<void>(pages, [this](void* block) {
          static_cast<std::byte*>(block)[0] = std::byte{0};  // not yet freed
          blocks_.erase(static_cast<std::byte*>(block));
        });
      });
    }
  }

  /// The first `count` keys of both tables.
  static std::vector<Key> keys(std::uint64_t count) {
    std::vector<Key> keys;
    for (const int table : {0, 1}) {
      for (std::uint64_t i = 0; i < count; ++i) {
        keys.push_back(make_key(TableId{static_cast<std::uint16_t>(table)}, i));
      }
    }
    std::ranges::sort(keys);
    return keys;
  }

  struct Located {
    std::vector<std::byte> staging;
    std::vector<std::byte*> rows;
    std::int64_t num_copied = 0;
  };
  Located locate(const std::vector<Key>& keys) {
    Located found;
    found.staging.resize(keys.size() * kRowBytes);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      found.rows.push_back(found.staging.data() + i * kRowBytes);
    }
    store_->locate(keys, found.rows);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      found.num_copied += found.rows[i] == found.staging.data() + i * kRowBytes ? 1 : 0;
    }
    return found;
  }
  bool is_in_a_block(const std::byte* row) const {
    return std::ranges::any_of(blocks_, [&](const auto& block) {
      return row >= block.first && row + kRowBytes <= block.first + block.second;
    });
  }
  void expect_rows(const std::vector<Key>& keys, const Located& found) {
    std::vector<std::byte> expected(keys.size() * kRowBytes);
    std::vector<std::byte*> places;
    for (std::size_t i = 0; i < keys.size(); ++i) places.push_back(&expected[i * kRowBytes]);
    store_->fetch(keys, places);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(std::memcmp(found.rows[i], places[i], kRowBytes), 0) << "row " << i;
    }
  }

  std::mutex mutex_;
  std::map<std::byte*, std::int64_t> blocks_;  // that are registered, and their bytes
  std::int64_t num_asked_ = 0;
  ThreadPool pool_{3};
  std::vector<std::unique_ptr<Table>> tables_;
  std::unique_ptr<TableRowStore> store_;
};

TEST_F(LocatedRows, AreCopiedFromTablesThatAreNotRegistered) {
  const Located found = locate(keys(100));
  EXPECT_EQ(found.num_copied, 200);
  expect_rows(keys(100), found);
}

TEST_F(LocatedRows, StayInRegisteredBlocksOldAndNew) {
  locate(keys(3));
  register_blocks(1000);
  EXPECT_EQ(num_asked_, 2) << "the block that each has";
  for (const std::uint64_t count : {0, 1, 3, 5000}) {
    const Located found = locate(keys(count));
    EXPECT_EQ(found.num_copied, 0);
    for (const std::byte* row : found.rows) ASSERT_TRUE(is_in_a_block(row));
    expect_rows(keys(count), found);
  }
  EXPECT_GE(num_asked_, 8);
  EXPECT_EQ(std::ssize(blocks_), num_asked_);
}

TEST_F(LocatedRows, SeeWhatIsPut) {
  register_blocks(1000);
  const std::vector<Key> one = keys(1);
  const Located found = locate(one);
  std::vector<std::byte> row(kRowBytes, std::byte{7});
  std::memcpy(row.data(), &one[0], sizeof(Key));
  store_->put(1, std::span(one).first(1), std::vector<const std::byte*>{row.data()});
  EXPECT_EQ(std::memcmp(found.rows[0], row.data(), kRowBytes), 0);
}

TEST_F(LocatedRows, AreCopiedOnceABlockOfTheirTableHasBeenRefused) {
  register_blocks(3);
  const Located early = locate(keys(3));
  EXPECT_EQ(early.num_copied, 0);
  const Located found = locate(keys(5000));
  EXPECT_EQ(num_asked_, 5) << "a refused table does not ask again";
  EXPECT_EQ(blocks_.size(), 3);
  expect_rows(keys(5000), found);
  expect_rows(keys(3), early);
  EXPECT_EQ(locate(keys(5000)).num_copied, 10'000);
}

TEST_F(LocatedRows, AreCopiedIfTheFirstBlockIsRefused) {
  register_blocks(0);
  EXPECT_EQ(locate(keys(100)).num_copied, 200);
}

}  // namespace
}  // namespace satrap::table
