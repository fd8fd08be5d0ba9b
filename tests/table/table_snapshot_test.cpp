#include "satrap/table/table_snapshot.h"

#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::table {
namespace {

using RowBytes = std::vector<std::byte>;
using Content = std::map<Key, RowBytes>;

TableSpec adagrad_spec(std::int64_t dim) {
  TableSpec spec;
  spec.name = "user";
  spec.dim = dim;
  return spec;
}

Key key_of_bytes(const std::byte* row) {
  RowHeader header;
  std::memcpy(&header, row, sizeof(header));
  return header.key;
}

/// The rows that a snapshot must hold: those updated at least once.
Content content_of(const Table& table) {
  Content content;
  table.for_each_row([&](const std::byte* row) {
    RowHeader header;
    std::memcpy(&header, row, sizeof(header));
    if (header.last_step > 0) content[header.key] = RowBytes(row, row + table.row_bytes());
  });
  return content;
}

void add_rows(Content& content, std::span<const std::byte> rows, std::int64_t row_bytes) {
  ASSERT_EQ(rows.size() % static_cast<std::size_t>(row_bytes), 0U);
  for (const std::byte* row = rows.data(); row != rows.data() + rows.size(); row += row_bytes) {
    const bool is_new = content.emplace(key_of_bytes(row), RowBytes(row, row + row_bytes)).second;
    ASSERT_TRUE(is_new) << "a row twice";
  }
}

/// Imitates training: each step inserts some ids and changes their rows in a way that depends on
/// their whole history.
class Trainer {
 public:
  explicit Trainer(Table& table, unsigned seed) : table_(table), random_(seed) {}

  void step(std::int64_t number, std::size_t num_ids, std::uint64_t id_space) {
    std::map<std::int64_t, std::vector<Key>> keys;
    for (std::size_t i = 0; i < num_ids; ++i) {
      const Key key = make_key(table_.spec().id, random_() % id_space);
      keys[partition_of(key)].push_back(key);
    }
    for (auto& [partition, list] : keys) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
      std::vector<RowPointer> rows(list.size());
      table_.find_or_insert(list, rows);
      table_.update_partition(partition, number, rows, [&](auto, RowPointer row) {
        float* values = weights_of(row);
        for (std::int64_t d = 0; d < table_.spec().dim; ++d) {
          values[d] = values[d] * 1.5F + static_cast<float>(number);
        }
      });
    }
  }

 private:
  Table& table_;
  std::mt19937_64 random_;
};

TEST(TableSnapshot, OfAnEmptyTableIsEmpty) {
  Table table(adagrad_spec(4), 1);
  TableSnapshot snapshot(table, 0);
  EXPECT_EQ(snapshot.max_rows(), 0);
  EXPECT_EQ(snapshot.write([](auto) { FAIL(); }), 0);
}

TEST(TableSnapshot, LeavesOutRowsThatWereNeverUpdated) {
  Table table(adagrad_spec(4), 1);
  std::vector<Key> keys = {make_key(TableId{0}, 1), make_key(TableId{0}, 2)};
  std::vector<RowPointer> rows(2);
  table.find_or_insert(keys, rows);
  table.update_partition(partition_of(keys[1]), 1, std::span(rows).subspan(1), [](auto, auto) {});
  TableSnapshot snapshot(table, 1);
  EXPECT_EQ(snapshot.max_rows(), 2);
  Content content;
  EXPECT_EQ(snapshot.write([&](auto saved) { add_rows(content, saved, table.row_bytes()); }), 1);
  EXPECT_EQ(content, content_of(table));
}

TEST(TableSnapshot, HoldsTheStateAtItsStepWhileTrainingChangesEveryRow) {
  Table table(adagrad_spec(6), 1);
  Trainer trainer(table, 3);
  std::int64_t step = 0;
  while (step < 20) trainer.step(++step, 2000, 30000);
  const Content expected = content_of(table);
  TableSnapshot snapshot(table, step);
  Content content;
  std::int64_t blocks = 0;
  const std::int64_t written = snapshot.write([&](std::span<const std::byte> rows) {
    add_rows(content, rows, table.row_bytes());
    // Between any two blocks a step changes old rows, in partitions that are done, in progress and
    // not yet started, some of them twice, and inserts new ones.
    if (++blocks % 5 == 1) trainer.step(++step, 3000, 40000);
  });
  EXPECT_GT(step, 25);
  EXPECT_EQ(written, std::ssize(expected));
  EXPECT_EQ(content, expected);
  EXPECT_NE(content_of(table), expected);
}

TEST(TableSnapshot, HoldsTheStateAtItsStepWhileAnotherThreadTrains) {
  Table table(adagrad_spec(8), 1);
  Trainer trainer(table, 4);
  std::int64_t step = 0;
  while (step < 10) trainer.step(++step, 4000, 20000);
  for (int round = 0; round < 3; ++round) {
    const Content expected = content_of(table);
    TableSnapshot snapshot(table, step);
    std::atomic<std::int64_t> steps_done = 0;
    std::atomic<bool> stop = false;
    std::thread training([&] {
      while (!stop) {
        trainer.step(++step, 500, 25000);
        ++steps_done;
        steps_done.notify_one();
      }
    });
    Content content;
    snapshot.write([&](std::span<const std::byte> rows) {
      add_rows(content, rows, table.row_bytes());
      // A slow disk: every block waits until training has advanced.
      const std::int64_t seen = steps_done.load();
      if (content.size() < 3000) steps_done.wait(seen);
    });
    stop = true;
    training.join();
    EXPECT_EQ(content, expected) << "round " << round;
  }
}

TEST(TableSnapshot, RestoresIntoAnEmptyTable) {
  Table table(adagrad_spec(5), 1);
  Trainer trainer(table, 5);
  for (std::int64_t step = 1; step <= 5; ++step) trainer.step(step, 1000, 5000);
  Table restored(adagrad_spec(5), 1);
  TableSnapshot(table, 5).write([&](auto rows) { restored.restore(rows); });
  EXPECT_EQ(content_of(restored), content_of(table));
}

TEST(TableSnapshot, AFailingSinkEndsItCleanly) {
  Table table(adagrad_spec(4), 1);
  Trainer trainer(table, 6);
  trainer.step(1, 1000, 1000);
  {
    TableSnapshot snapshot(table, 1);
    EXPECT_THROW(TableSnapshot(table, 1), Error) << "one at a time";
  }
  {
    TableSnapshot snapshot(table, 1);
    EXPECT_THROW(snapshot.write([](auto) { throw Error(ErrorCode::kIo, "disk full"); }), Error);
  }
  trainer.step(2, 1000, 1000);
  Content content;
  TableSnapshot(table, 2).write([&](auto rows) { add_rows(content, rows, table.row_bytes()); });
  EXPECT_EQ(content, content_of(table));
}

}  // namespace
}  // namespace satrap::table
