// Tables that evict rows, compared with a literal implementation of the definition in row_limits.h.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/hash.h"
#include "satrap/table/row_limits.h"
#include "satrap/table/table.h"
#include "satrap/table/table_snapshot.h"
#include "tests/support/sanitized.h"

namespace satrap::table {
namespace {

constexpr std::int64_t kGroups = 4096;

TableSpec spec_of(RowLimits limits) {
  TableSpec spec;
  spec.name = "user";
  spec.dim = 2;
  spec.limits = limits;
  return spec;
}

/// The existing rows, and the step that last requested each.
class LimitsModel {
 public:
  explicit LimitsModel(RowLimits limits) : limits_(limits) {}

  void step(std::int64_t number, const std::vector<Key>& keys) {
    begin(number);
    if (candidates_) candidates_->begin(number);
    for (const Key key : keys) {
      if (asked_.contains(key) || is_admitted(key, number)) asked_[key] = number;
    }
  }

  std::set<Key> keys() const {
    std::set<Key> keys;
    for (const auto& [key, asked] : asked_) keys.insert(key);
    return keys;
  }
  std::int64_t num_gone() const { return num_gone_; }

 private:
  bool is_admitted(Key key, std::int64_t step) {
    if (limits_.admit_after == 1) return true;
    const bool is_remembered = candidates_->asked_.contains(key);
    if (is_remembered && sightings_[key] + 1 >= limits_.admit_after) return true;
    sightings_[key] = is_remembered ? sightings_[key] + 1 : 1;
    candidates_->asked_[key] = step;
    return false;
  }

  void begin(std::int64_t step) {
    std::map<std::int64_t, std::vector<Key>> groups;
    for (const auto& [key, asked] : asked_) groups[group_of(key)].push_back(key);
    for (const auto& [group, rows] : groups) begin(group, rows, step);
  }

  static std::int64_t group_of(Key key) {
    return static_cast<std::int64_t>(mixed_id_of(key) / ((std::uint64_t{1} << kIdBits) / kGroups));
  }

  void begin(std::int64_t group, const std::vector<Key>& keys, std::int64_t step) {
    std::vector<std::pair<std::int64_t, Key>> oldest;
    for (const Key key : keys) oldest.emplace_back(asked_.at(key), key);
    std::ranges::sort(oldest);
    const auto age = [&](std::size_t i) { return step - oldest[i].first; };
    std::size_t gone = 0;
    const auto go_while = [&](const auto& condition) {
      while (gone < oldest.size() && age(gone) >= limits_.pinned_steps && condition()) {
        asked_.erase(oldest[gone++].second);
        ++num_gone_;
      }
    };
    const std::int64_t period = std::max<std::int64_t>(1, limits_.ttl_steps / 16);
    if (limits_.ttl_steps > 0 && (step + group) % period == 0) {
      go_while([&] { return age(gone) >= limits_.ttl_steps; });
    }
    const std::int64_t capacity = (limits_.capacity_rows + kGroups - 1) / kGroups;
    const auto left = [&] { return static_cast<std::int64_t>(oldest.size() - gone); };
    if (limits_.capacity_rows == 0 || left() <= capacity) return;
    const double part =
        1.0 / 16 + RandomStream{hash64(static_cast<std::uint64_t>(group))}.uniform_double(0) / 8;
    const std::int64_t low =
        capacity - static_cast<std::int64_t>(part * static_cast<double>(capacity));
    go_while([&] { return left() > low; });
  }

  const RowLimits limits_;
  const std::unique_ptr<LimitsModel> candidates_ =
      limits_.admit_after == 1
          ? nullptr
          : std::make_unique<LimitsModel>(
                RowLimits{limits_.capacity_rows, limits_.ttl_steps, limits_.pinned_steps});
  std::map<Key, std::int64_t> sightings_;  // of the ids that candidates_ remembers
  std::map<Key, std::int64_t> asked_;
  std::int64_t num_gone_ = 0;
};

/// Unique ascending ids of a step: a few frequent ones, many rare ones, all in a few groups.
std::vector<Key> keys_of_step(std::int64_t step) {
  constexpr std::uint64_t kGroupShift = kIdBits - 12;
  std::set<Key> keys;
  const RandomStream random{hash64(5, static_cast<std::uint64_t>(step))};
  for (std::uint64_t i = 0; i < 300; ++i) {
    const double skewed = std::pow(random.uniform_double(2 * i), 3.0) * 4000;
    const auto id = static_cast<std::uint64_t>(skewed);
    const std::uint64_t group = id * 1361 % 61 * 67;  // spread over partitions and shards
    keys.insert(static_cast<Key>((group << kGroupShift) | hash64(id) >> (64 - kGroupShift)));
  }
  return {keys.begin(), keys.end()};
}

/// Steps over one table, or over several that are its shards.
class Shards {
 public:
  Shards(const TableSpec& spec, std::int64_t num_shards) {
    for (std::int64_t s = 0; s < num_shards; ++s) {
      tables_.push_back(std::make_unique<Table>(spec, 1, num_shards));
    }
  }

  Table& table(std::size_t shard) { return *tables_[shard]; }

  void plan(std::int64_t step) {
    Plan& plan = plans_[step];
    for (const auto& table : tables_) {
      for (std::int64_t p = 0; p < kPartitions; ++p) table->begin_step(p, step);
    }
    plan.keys = keys_of_step(step);
    plan.rows.resize(plan.keys.size());
    for (std::size_t i = 0; i < plan.keys.size(); ++i) {
      Table& table = table_of_key(plan.keys[i]);
      table.find_or_insert({&plan.keys[i], 1}, {&plan.rows[i], 1}, step);
      RowPointer again = nullptr;  // as another rank
      table.find_or_insert({&plan.keys[i], 1}, {&again, 1}, step);
      ASSERT_EQ(again, plan.rows[i]);
    }
  }

  /// Makes the rows a function of their whole history.
  void apply(std::int64_t step) {
    const Plan& plan = plans_.at(step);
    for (std::size_t i = 0; i < plan.keys.size(); ++i) {
      Table& table = table_of_key(plan.keys[i]);
      table.apply_sightings(step, {&plan.keys[i], 1}, {&plan.rows[i], 1});
      table.apply_sightings(step, {&plan.keys[i], 1}, {&plan.rows[i], 1});  // as another rank
      if (is_zero(table, plan.rows[i])) {
        EXPECT_GT(table.spec().limits.admit_after, 1);
        table.update_partition(0, step, {&plan.rows[i], 1}, [](auto, auto) { FAIL(); });
        continue;
      }
      ASSERT_EQ(header_of(plan.rows[i]).key, plan.keys[i]) << "its row went while it was needed";
      const std::int64_t partition = partition_of(plan.keys[i], std::ssize(tables_));
      const std::span<const RowPointer> row{&plan.rows[i], 1};
      if (step % 7 == 0) {
        table.skip_partition(partition, step, row);
        continue;
      }
      table.update_partition(partition, step, row, [&](auto, RowPointer r) {
        weights_of(r)[0] = weights_of(r)[0] * 1.5F + static_cast<float>(step);
      });
    }
    for (const auto& table : tables_) table->note_applied(step);
    plans_.erase(step);
  }

  static bool is_zero(const Table& table, RowPointer row) {
    return std::all_of(row, row + table.row_bytes(), [](std::byte b) { return b == std::byte{}; });
  }

  /// Excludes ids that have no row.
  using Content = std::map<Key, std::vector<std::byte>>;
  static void add(Content& content, std::span<const std::byte> rows, std::int64_t row_bytes) {
    for (std::size_t at = 0; at < rows.size(); at += static_cast<std::size_t>(row_bytes)) {
      const auto row = rows.subspan(at, static_cast<std::size_t>(row_bytes));
      RowHeader header;
      std::memcpy(&header, row.data(), sizeof(header));
      if ((header.count & kCandidateFlag) != 0) continue;
      ASSERT_TRUE(content.try_emplace(header.key, row.begin(), row.end()).second) << "a row twice";
    }
  }

  Content content() const {
    Content content;
    for (const auto& table : tables_) {
      std::int64_t num_rows = 0;
      table->for_each_row([&](const std::byte* row) {
        add(content, {row, static_cast<std::size_t>(table->row_bytes())}, table->row_bytes());
        ++num_rows;
      });
      EXPECT_EQ(table->num_rows(), num_rows);
    }
    return content;
  }

 private:
  struct Plan {
    std::vector<Key> keys;
    std::vector<RowPointer> rows;
  };
  Table& table_of_key(Key key) {
    return *tables_[static_cast<std::size_t>(shard_of(key, std::ssize(tables_)))];
  }

  std::vector<std::unique_ptr<Table>> tables_;
  std::map<std::int64_t, Plan> plans_;
};

std::set<Key> keys_of(const Shards::Content& content) {
  std::set<Key> keys;
  for (const auto& [key, row] : content) keys.insert(key);
  return keys;
}

class TableLimits : public testing::TestWithParam<RowLimits> {};
INSTANTIATE_TEST_SUITE_P(Limits,
                         TableLimits,
                         testing::Values(RowLimits{10 * kGroups, 0, 1},
                                         RowLimits{20 * kGroups, 0, 6},
                                         RowLimits{0, 40, 6},
                                         RowLimits{0, 3, 6},
                                         RowLimits{1, 0, 4},
                                         RowLimits{25 * kGroups, 35, 6},
                                         RowLimits{20 * kGroups, 0, 6, 3},
                                         RowLimits{0, 30, 6, 2}));

TEST_P(TableLimits, TheRowsThatTheDefinitionLeavesAreThere) {
  LimitsModel model(GetParam());
  Shards table(spec_of(GetParam()), 1);
  for (std::int64_t step = 1; step <= 150; ++step) {
    model.step(step, keys_of_step(step));
    table.plan(step);
    table.apply(step);
    if (kSanitized && step % 10 != 0) continue;
    ASSERT_EQ(keys_of(table.content()), model.keys()) << "step " << step;
  }
  EXPECT_GT(model.num_gone(), 1000);
}

TEST_P(TableLimits, AnyPowerOfTwoOfShardsHasTheSameRows) {
  Shards one(spec_of(GetParam()), 1);
  for (std::int64_t step = 1; step <= 60; ++step) one.plan(step), one.apply(step);
  for (const std::int64_t num_shards : {2, 8, 64}) {
    Shards many(spec_of(GetParam()), num_shards);
    for (std::int64_t step = 1; step <= 60; ++step) many.plan(step), many.apply(step);
    EXPECT_EQ(many.content(), one.content()) << num_shards << " shards";
  }
}

TEST_P(TableLimits, PlansAheadChangeNothing) {
  Shards in_turn(spec_of(GetParam()), 1), ahead(spec_of(GetParam()), 1);
  const std::int64_t distance = GetParam().pinned_steps - 1;
  for (std::int64_t step = 1; step <= 100 + distance; ++step) {
    ahead.plan(step);
    if (step <= distance) continue;
    ahead.apply(step - distance);
    in_turn.plan(step - distance);
    in_turn.apply(step - distance);
  }
  for (std::int64_t step = 101; step <= 100 + distance; ++step) {
    ahead.apply(step), in_turn.plan(step), in_turn.apply(step);
  }
  EXPECT_EQ(ahead.content(), in_turn.content());
}

/// Checks a snapshot of step 50 while plans are ahead, the lookups meanwhile, and that a table
/// restored from it evicts the same rows.
TEST_P(TableLimits, ASnapshotAndLookupsAreOfTheirStepWhilePlansAreAhead) {
  const std::int64_t distance = GetParam().pinned_steps - 1;
  Shards in_turn(spec_of(GetParam()), 1), ahead(spec_of(GetParam()), 1);
  for (std::int64_t step = 1; step <= 50; ++step) in_turn.plan(step), in_turn.apply(step);
  const Shards::Content expected = in_turn.content();
  std::int64_t planned = 0;
  for (std::int64_t step = 1; step <= 50; ++step) {
    while (planned < step + distance) ahead.plan(++planned);
    ahead.apply(step);
  }

  std::vector<Key> keys;
  for (std::int64_t step = 1; step <= 50 + distance; ++step) {
    const std::vector<Key> more = keys_of_step(step);
    keys.insert(keys.end(), more.begin(), more.end());
  }
  std::ranges::sort(keys);
  std::vector<RowPointer> rows(keys.size());
  ahead.table(0).find(keys, rows);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto row = expected.find(keys[i]);
    if (row == expected.end()) {  // none, or one that later steps have requested
      ASSERT_TRUE(rows[i] == nullptr || header_of(rows[i]).last_step == 0);
      ASSERT_TRUE(rows[i] == nullptr || GetParam().admit_after == 1);
    } else {
      ASSERT_NE(rows[i], nullptr);
      ASSERT_EQ(std::memcmp(rows[i], row->second.data(), row->second.size()), 0);
    }
  }

  Shards::Content content;
  Shards resumed(spec_of(GetParam()), 1);
  TableSnapshot snapshot(ahead.table(0), 50);
  std::int64_t step = 50;
  snapshot.write([&](std::span<const std::byte> block) {
    Shards::add(content, block, ahead.table(0).row_bytes());
    resumed.table(0).restore(block);
    for (int i = 0; i < 2; ++i) {
      ahead.plan(++planned);  // new rows replace others that are still to be written
      ahead.apply(++step);
    }
  });
  EXPECT_EQ(content, expected);
  for (std::int64_t next = 51; next <= 50 + 60; ++next) {
    in_turn.plan(next), in_turn.apply(next);
    resumed.plan(next), resumed.apply(next);
    if (kSanitized && next % 10 != 0) continue;
    ASSERT_EQ(resumed.content(), in_turn.content()) << "step " << next;
  }
}

TEST(TableLimitsAdmission, AnIdThatHasNoRowIsReadAsZeros) {
  Table table(spec_of({kGroups, 0, 1, 2}), 1);
  const Key key = make_key(TableId{0}, 5);
  RowPointer row = nullptr;
  table.find_or_insert({&key, 1}, {&row, 1}, 1);
  EXPECT_TRUE(Shards::is_zero(table, row));
  EXPECT_EQ(table.num_rows(), 0);
  std::vector<std::byte> missing(static_cast<std::size_t>(table.row_bytes()), std::byte{1});
  table.fill_missing(key, missing.data());
  EXPECT_TRUE(Shards::is_zero(table, missing.data()));
  table.find_or_insert({&key, 1}, {&row, 1}, 2);
  EXPECT_EQ(header_of(row).key, key);
  EXPECT_EQ(table.num_rows(), 1);
}

TEST(TableLimitsMemory, StaysTheSameHoweverManyRowsThereHaveBeen) {
  Table table(spec_of({16 * kGroups, 0, 2}), 1);
  std::uint64_t next = 0;
  std::vector<Key> keys(4096);
  std::vector<RowPointer> rows(keys.size());
  std::int64_t bytes = 0, num_rows = 0;
  for (std::int64_t step = 1; step <= 400; ++step) {
    for (Key& key : keys) key = make_key(TableId{0}, next++);
    std::ranges::sort(keys);
    for (std::int64_t p = 0; p < kPartitions; ++p) table.begin_step(p, step);
    table.find_or_insert(keys, rows, step);
    if (step == 100) bytes = table.resident_bytes(), num_rows = table.num_rows();
  }
  EXPECT_LE(table.num_rows(), 17 * kGroups + 2 * 4096);
  EXPECT_NEAR(static_cast<double>(table.num_rows()), static_cast<double>(num_rows), 4096.0);
  EXPECT_LE(static_cast<double>(table.resident_bytes()), 1.15 * static_cast<double>(bytes));
}

}  // namespace
}  // namespace satrap::table
