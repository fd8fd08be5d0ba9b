#include "satrap/table/table.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/table/stored_weights.h"

namespace satrap::table {
namespace {

TableSpec spec_of(std::int64_t dim, RowOptimizerType type = RowOptimizerType::kAdagrad) {
  TableSpec spec;
  spec.name = "user";
  spec.id = TableId{3};
  spec.dim = dim;
  spec.optimizer.type = type;
  return spec;
}

Key key_of(std::uint64_t id) { return make_key(TableId{3}, id); }

std::vector<RowPointer> insert(Table& table, const std::vector<Key>& keys) {
  std::vector<RowPointer> rows(keys.size());
  table.find_or_insert(keys, rows);
  return rows;
}

TEST(Table, RowHasHeaderWeightsAndState) {
  Table table(spec_of(3), 1);
  EXPECT_EQ(table.row_bytes(), 16 + 4 * (4 + 4));
  const RowPointer row = insert(table, {key_of(7)})[0];
  EXPECT_EQ(header_of(row).key, key_of(7));
  EXPECT_EQ(header_of(row).last_step, 0U);
  EXPECT_EQ(header_of(row).count, 0U);
  std::vector<float> initial(3);
  table.spec().init.fill(RowInit::table_seed(1, "user"), key_of(7), initial);
  EXPECT_EQ(std::vector(weights_of(row), weights_of(row) + 3), initial);
  EXPECT_EQ(std::vector(weights_of(row) + 3, weights_of(row) + 6), std::vector<float>(3, 0.0F));
}

TEST(Table, FindsNothingInAnEmptyTable) {
  const Table table(spec_of(4), 1);
  std::vector<RowPointer> rows(1, reinterpret_cast<RowPointer>(1));
  table.find(std::vector{key_of(1)}, rows);
  EXPECT_EQ(rows[0], nullptr);
  EXPECT_EQ(table.num_rows(), 0);
  table.find({}, {});
}

TEST(Table, AKeyTwiceInOneCallIsOneRow) {
  Table table(spec_of(4), 1);
  const auto rows = insert(table, {key_of(1), key_of(2), key_of(1)});
  EXPECT_EQ(rows[0], rows[2]);
  EXPECT_NE(rows[0], rows[1]);
  EXPECT_EQ(table.num_rows(), 2);
}

TEST(Table, KeepsRowsInPlaceWhileItGrows) {
  Table table(spec_of(2, RowOptimizerType::kSgd), 1);
  std::mt19937_64 random(1);
  std::map<Key, RowPointer> expected;
  for (int call = 0; call < 300; ++call) {
    std::vector<Key> keys;
    for (int i = 0; i < 1000; ++i) keys.push_back(key_of(random() % 200000));
    const auto rows = insert(table, keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(header_of(rows[i]).key, keys[i]);
      ASSERT_EQ(expected.try_emplace(keys[i], rows[i]).first->second, rows[i]);
    }
  }
  EXPECT_EQ(table.num_rows(), std::ssize(expected));
  std::set<RowPointer> distinct;
  for (const auto& [key, row] : expected) distinct.insert(row);
  EXPECT_EQ(distinct.size(), expected.size());
  for (const auto& [key, row] : expected) {
    std::vector<RowPointer> found(1);
    table.find(std::vector{key}, found);
    ASSERT_EQ(found[0], row);
  }
  std::int64_t visited = 0;
  table.for_each_row([&](const std::byte* row) {
    RowHeader header;
    std::memcpy(&header, row, sizeof(header));
    visited += expected.at(header.key) == row;
  });
  EXPECT_EQ(visited, table.num_rows());
}

TEST(Table, KeysThatCollideInTheIndexAreDistinctRows) {
  // The same partition, the same place in the index and the same tag: only the middle bits differ.
  std::vector<Key> keys;
  for (std::uint64_t i = 0; i < 100; ++i) {
    keys.push_back(static_cast<Key>((std::uint64_t{3} << kIdBits) | (i << 10) | 0x55));
  }
  Table table(spec_of(2), 1);
  const auto rows = insert(table, keys);
  EXPECT_EQ(std::set(rows.begin(), rows.end()).size(), keys.size());
  EXPECT_EQ(insert(table, keys), rows);
}

TEST(Table, OnePartitionHoldsManyRows) {
  Table table(spec_of(1, RowOptimizerType::kSgd), 1);
  std::mt19937_64 random(2);
  std::vector<Key> keys;  // so many that the index has several segments
  for (int i = 0; i < 400'000; ++i) {
    const std::uint64_t rest = random() >> (64 - kIdBits + kPartitionBits);
    const std::uint64_t id = (std::uint64_t{21} << (kIdBits - kPartitionBits)) | rest;
    keys.push_back(static_cast<Key>((std::uint64_t{3} << kIdBits) | id));
  }
  std::vector<RowPointer> rows;
  for (auto part = keys.begin(); part != keys.end(); part += 10'000) {
    const auto inserted = insert(table, {part, part + 10'000});
    rows.insert(rows.end(), inserted.begin(), inserted.end());
  }
  EXPECT_EQ(table.num_rows(), 400'000);
  EXPECT_EQ(insert(table, keys), rows);
  for (std::size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(header_of(rows[i]).key, keys[i]);
  std::vector<RowPointer> missing(1);
  table.find(std::vector{static_cast<Key>(static_cast<std::uint64_t>(keys[0]) ^ 1)}, missing);
  EXPECT_EQ(missing[0], nullptr);
}

TEST(Table, UpdateSeesEachRowOnceAndStampsIt) {
  Table table(spec_of(1, RowOptimizerType::kSgd), 1);
  std::vector<Key> keys;
  for (std::uint64_t i = 0; std::ssize(keys) < 200; ++i) {
    if (partition_of(key_of(i)) == 5) keys.push_back(key_of(i));
  }
  const auto rows = insert(table, keys);
  for (std::uint32_t step = 1; step <= 2; ++step) {
    std::vector<std::int64_t> seen;
    table.update_partition(5, step * 10, rows, [&](std::int64_t i, RowPointer row) {
      seen.push_back(i);
      EXPECT_EQ(row, rows[static_cast<std::size_t>(i)]);
      weights_of(row)[0] = static_cast<float>(i);
    });
    EXPECT_EQ(seen.size(), 200U);
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    EXPECT_EQ(header_of(rows[199]).last_step, step * 10);
    EXPECT_EQ(header_of(rows[199]).count, step);
  }
  EXPECT_EQ(weights_of(rows[150])[0], 150.0F);
}

TEST(Table, CountOfUpdatesSaturates) {
  Table table(spec_of(1), 1);
  const auto rows = insert(table, {key_of(1)});
  header_of(rows[0]).count = kMaxCount - 1;
  for (std::int64_t step = 1; step <= 3; ++step) {
    table.update_partition(partition_of(key_of(1)), step, rows, [](auto, auto) {});
  }
  EXPECT_EQ(header_of(rows[0]).count, kMaxCount);
}

TEST(Table, RestoresRowsUnderAnotherTableNumber) {
  Table table(spec_of(2), 1);
  const auto rows = insert(table, {key_of(1), key_of(2)});
  header_of(rows[1]) = {.key = key_of(2), .last_step = 4, .count = 3};
  weights_of(rows[1])[0] = 42.0F;
  std::vector<std::byte> saved;
  for (const RowPointer row : rows) saved.insert(saved.end(), row, row + table.row_bytes());

  TableSpec other = spec_of(2);
  other.id = TableId{0};
  Table restored(other, 99);
  restored.restore(saved);
  EXPECT_EQ(restored.num_rows(), 2);
  std::vector<RowPointer> found(1);
  restored.find(std::vector{make_key(TableId{0}, 2)}, found);
  ASSERT_NE(found[0], nullptr);
  EXPECT_EQ(header_of(found[0]).last_step, 4U);
  EXPECT_EQ(header_of(found[0]).count, 3U);
  EXPECT_TRUE(std::equal(weights_of(found[0]), weights_of(found[0]) + 4, weights_of(rows[1])));
  EXPECT_THROW(restored.restore(saved), Error) << "the rows are there already";
  EXPECT_THROW(restored.restore(std::span(saved).first(7)), Error);
}

TEST(Table, CountsItsBytes) {
  Table table(spec_of(16), 1);
  const std::int64_t empty = table.resident_bytes();
  std::vector<Key> keys;
  for (std::uint64_t i = 0; i < 300'000; ++i) keys.push_back(key_of(i));
  insert(table, keys);
  const std::int64_t bytes = table.resident_bytes() - empty;
  EXPECT_GE(bytes, 300'000 * table.row_bytes());
  EXPECT_LE(static_cast<double>(bytes),
            1.15 * 300'000.0 * static_cast<double>(table.row_bytes() + 16));
}

TEST(Table, PartitionsGrowAtDifferentTimes) {
  // With 65536 uniform ids in 64 partitions each holds about 1024 rows. The index sizes must differ
  // while they grow, so the total bytes never double at once.
  Table table(spec_of(1, RowOptimizerType::kSgd), 1);
  std::int64_t last = table.resident_bytes();
  double largest_jump = 0;
  for (std::uint64_t i = 0; i < 65536; i += 256) {
    std::vector<Key> keys;
    for (std::uint64_t j = 0; j < 256; ++j) keys.push_back(key_of(i + j));
    insert(table, keys);
    const std::int64_t now = table.resident_bytes();
    if (i > 16384) {
      largest_jump =
          std::max(largest_jump, static_cast<double>(now - last) / static_cast<double>(last));
    }
    last = now;
  }
  EXPECT_GT(largest_jump, 0.0);
  EXPECT_LT(largest_jump, 0.2);
}

TEST(Table, LookupsInsertsAndUpdatesRunAtTheSameTime) {
  Table table(spec_of(4, RowOptimizerType::kSgd), 1);
  std::vector<std::vector<Key>> by_partition(kPartitions);
  for (std::uint64_t i = 0; i < 20000; ++i) {
    by_partition[static_cast<std::size_t>(partition_of(key_of(i)))].push_back(key_of(i));
  }
  std::vector<Key> old_keys;
  for (const auto& keys : by_partition) {
    old_keys.insert(old_keys.end(), keys.begin(), keys.begin() + 50);
  }
  const auto old_rows = insert(table, old_keys);
  std::atomic<bool> inserted = false;
  std::thread inserter([&] {
    for (const auto& keys : by_partition) insert(table, keys);
    inserted = true;
  });
  std::thread reader([&] {
    std::vector<RowPointer> rows(old_keys.size());
    do {
      table.find(old_keys, rows);
      EXPECT_EQ(rows, old_rows);
    } while (!inserted);
  });
  for (std::int64_t step = 1; step <= 20; ++step) {
    for (std::size_t p = 0; p < by_partition.size(); ++p) {
      table.update_partition(static_cast<std::int64_t>(p), step,
                             std::span(old_rows).subspan(p * 50, 50),
                             [&](auto, RowPointer row) { weights_of(row)[0] += 1.0F; });
    }
  }
  inserter.join();
  reader.join();
  EXPECT_EQ(table.num_rows(), 20000);
  EXPECT_EQ(header_of(old_rows[0]).count, 20U);
}

TableSpec typed_spec(FloatType weights, std::int64_t dim, RowOptimizerType optimizer) {
  TableSpec spec;
  spec.name = "user";
  spec.dim = dim;
  spec.weights = weights;
  spec.optimizer.type = optimizer;
  return spec;
}

class TableRowTypes : public testing::TestWithParam<FloatType> {};
INSTANTIATE_TEST_SUITE_P(Types,
                         TableRowTypes,
                         testing::Values(FloatType::kFp32, FloatType::kBf16, FloatType::kFp16),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(TableRowTypes, ANewRowIsItsInitialWeightsAsStoredAndTheStateThatFitsThem) {
  for (const std::int64_t dim : {1, 5, 16, 300}) {
    const TableSpec spec = typed_spec(GetParam(), dim, RowOptimizerType::kFtrl);
    const Table table(spec, 9);
    const Key key = make_key(spec.id, 77);
    std::vector<std::byte> memory(static_cast<std::size_t>(table.row_bytes()));
    table.initialize_row(key, memory.data());
    std::vector<float> initial(static_cast<std::size_t>(dim)), weights(initial.size());
    spec.init.fill(RowInit::table_seed(9, "user"), key, initial);
    const std::vector<float> expected = stored(spec, 9, key, 0, initial);
    table.layout().read_weights(memory.data(), weights.data());
    EXPECT_EQ(weights, expected);
    EXPECT_EQ(weights == initial, GetParam() == FloatType::kFp32);
    std::vector<float> state(static_cast<std::size_t>(table.layout().state_floats));
    spec.optimizer.initialize_state(expected.data(), state.data(), dim);
    const float* const actual = table.layout().state_of(memory.data());
    EXPECT_EQ(std::vector(actual, actual + state.size()), state);
  }
}

TEST_P(TableRowTypes, AChangeIsMadeInFloatsAndStoredForItsStep) {
  const TableSpec spec = typed_spec(GetParam(), 7, RowOptimizerType::kSgd);
  const Table table(spec, 9);
  const Key key = make_key(spec.id, 3);
  std::vector<std::byte> memory(static_cast<std::size_t>(table.row_bytes()));
  table.initialize_row(key, memory.data());
  std::vector<float> expected(7), scratch(7), weights(7);
  table.layout().read_weights(memory.data(), expected.data());
  for (const std::int64_t step : {1, 2, 30}) {
    for (float& w : expected) w += 0.001F;
    expected = stored(spec, 9, key, step, expected);
    table.layout().change(memory.data(), table.table_step(step).rounding_seed, scratch.data(),
                          [](float* w, float*) {
                            for (int d = 0; d < 7; ++d) w[d] += 0.001F;
                          });
    table.layout().read_weights(memory.data(), weights.data());
    EXPECT_EQ(weights, expected) << "step " << step;
  }
}

}  // namespace
}  // namespace satrap::table
