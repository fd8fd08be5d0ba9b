#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "satrap/core/mutex.h"
#include "satrap/table/register_block.h"
#include "satrap/table/row.h"
#include "satrap/table/sharding.h"
#include "satrap/table/table_spec.h"

namespace satrap::table {

class RowMemory;

/// The rows of one table in this process (all of them, or those of one shard of several): flat
/// memory, no allocation per row, no long pause when it grows. Rows are divided by the top bits of
/// their position in the shard into kPartitions partitions, each with its own open-addressing index
/// (4 bytes per entry: 8 bits of tag, 24 of row number) and its share of the memory for rows.
/// Partitions reach the size at which they grow at different moments, so that no single step pays
/// for the growth of the whole table.
///
/// Thread rules: find_or_insert by one thread at a time per partition; update_partition by one
/// thread at a time per partition. The two, and find, may run at the same time: rows never move, an
/// insert touches no existing row, an update touches no key. The caller must not read the weights
/// of rows that are being updated.
///
/// A table with limits (TableSpec::limits) evicts rows, but not at once: later steps no longer find
/// a row evicted when step t begins, but its memory is kept until the updates of step t are
/// certainly done. So a snapshot of an earlier step, and lookups between steps, still have it.
class Table {
 public:
  /// With several shards, all keys are of the same one (shard_of); which one makes no difference.
  Table(TableSpec spec, std::uint64_t seed, std::int64_t num_shards = 1);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  const TableSpec& spec() const { return spec_; }
  const RowLayout& layout() const { return layout_; }
  /// Bytes of a row, header included: the size of a row in a snapshot.
  std::int64_t row_bytes() const { return layout_.row_bytes; }

  /// Evicts the rows of a partition that exceed the limits when `step` begins. Call it before any
  /// find_or_insert of the step, from the same thread; does nothing if it has been called for the
  /// step, or there are no limits.
  void begin_step(std::int64_t partition, std::int64_t step);

  /// Rows of the `keys` that `step` uses, of any partitions (fastest if they ascend); missing ones
  /// are created and initialised. Ids that are not admitted get a shared row of zeros, which
  /// updates do not change. Throws Error(kUnavailable) if memory is exhausted or a partition is
  /// full (2^24 rows).
  void find_or_insert(std::span<const Key> keys,   // [n]
                      std::span<RowPointer> rows,  // [n] out
                      std::int64_t step = 1);

  /// As find_or_insert, but nullptr for missing rows, and nothing is created. With limits: the rows
  /// as of the last note_applied().
  void find(std::span<const Key> keys, std::span<RowPointer> rows) const;

  /// All updates of `step` have been made; needed with limits, because updates may run in parallel
  /// with plans of later steps.
  void note_applied(std::int64_t step);

  /// Writes a row of `key` as find_or_insert would create it: header, weights, state.
  void initialize_row(Key key, RowPointer row) const;  // [row_bytes()] out

  /// Writes the row that is read for a key without one: its initial row or, if ids are admitted
  /// late, zeros.
  void fill_missing(Key key, RowPointer row) const;  // [row_bytes()] out

  /// The constants of the table for updates of `step`.
  TableStep table_step(std::int64_t step) const { return spec_.table_step(table_seed_, step); }

  /// Runs the optimizer: update(i, rows[i]) for each of `rows`, which all belong to `partition`,
  /// may change that row's weights and state and nothing else of the table. Sets last_step and
  /// count. While a snapshot is being written, rows it has not reached are copied aside before they
  /// change.
  template <class Update>
  void update_partition(std::int64_t partition,
                        std::int64_t step,  // from 1
                        std::span<const RowPointer> rows,
                        Update&& update) {
    change_rows(partition, rows, [&](std::size_t i) {
      update(static_cast<std::int64_t>(i), rows[i]);
      note_update(header_of(rows[i]), static_cast<std::uint32_t>(step));
    });
  }

  /// Replaces whole rows by a cache's copies: header, weights and state. `rows` all belong to
  /// `partition`. A snapshot that has begun keeps them as they were.
  void replace_partition(std::int64_t partition,
                         std::span<const RowPointer> rows,         // [n]
                         std::span<const std::byte* const> from);  // [n], with the same keys

  /// With limits that admit ids late: records the sightings of a step's `keys` that got no row.
  /// Call it with the result of find_or_insert, once for every step and rank, together with its
  /// updates; one thread at a time per partition.
  void apply_sightings(std::int64_t step,
                       std::span<const Key> keys,          // [n]
                       std::span<const RowPointer> rows);  // [n]

  /// Instead of update_partition, for a step that used rows and changes none: with limits,
  /// snapshots need the step that last used a row.
  void skip_partition(std::int64_t partition, std::int64_t step, std::span<const RowPointer> rows) {
    if (!spec_.limits.any()) return;
    change_rows(partition, rows, [&](std::size_t i) {
      header_of(rows[i]).last_step = static_cast<std::uint32_t>(step);
    });
  }

  /// Adds rows as TableSnapshot wrote them, perhaps under another table number. Their keys must be
  /// new to the table; throws Error(kCorrupt) otherwise. Nothing else may use the table meanwhile.
  void restore(std::span<const std::byte> rows);  // [n, row_bytes()]

  /// Calls visit for every row, in no particular order. Nothing else may use the table meanwhile.
  void for_each_row(const std::function<void(const std::byte* row)>& visit) const;

  /// Registers the memory of rows, all that there is and each block that is added, before it has a
  /// row. Nothing else may use the table meanwhile. Registrations end with the table.
  void register_blocks(RegisterBlock function);

  /// Whether all rows are in registered memory: not once a block has been refused. Thread-safe.
  bool is_registered() const;

  std::int64_t num_rows() const;        // thread-safe
  std::int64_t resident_bytes() const;  // of rows and index; thread-safe

 private:
  friend class TableSnapshot;
  struct Partition;
  static constexpr std::size_t kRowsPerLock = 64;

  template <class Change>
  void change_rows(std::int64_t partition, std::span<const RowPointer> rows, Change&& change) {
    for (std::size_t begin = 0; begin < rows.size(); begin += kRowsPerLock) {
      const std::size_t end = std::min(rows.size(), begin + kRowsPerLock);
      const MutexLock lock(rows_mutex(partition));
      copy_aside(partition, rows.subspan(begin, end - begin));
      for (std::size_t i = begin; i < end; ++i) {
        if (rows[i] != no_row_.data()) change(i);
      }
    }
  }
  Mutex& rows_mutex(std::int64_t partition) const;
  void copy_aside(std::int64_t partition, std::span<const RowPointer> rows)
      SATRAP_REQUIRES(rows_mutex(partition));
  std::uint64_t position_of(Key key) const { return position_in_shard(key, num_shards_); }
  Partition& partition_numbered(std::int64_t number) const;
  Partition& partition_with(std::uint64_t position) const;
  void find_in_index(std::span<const Key> keys, std::span<RowPointer> rows) const;
  bool sight(Key key, std::int64_t step, std::int64_t admit_after);
  void restore_sightings(const RowHeader& header);
  RowPointer find_or_insert_one(Key key, std::int64_t step);
  RowPointer append_row(Partition& partition, Key key, std::int64_t step);
  void find_departed(std::span<const Key> keys, std::span<RowPointer> rows) const;

  const TableSpec spec_;
  const RowLayout layout_;
  const std::uint64_t table_seed_;
  const std::int64_t num_shards_;
  const std::shared_ptr<RowMemory> memory_;  // of the rows of all partitions
  std::array<std::unique_ptr<Partition>, kPartitions> partitions_;
  std::atomic<std::int64_t> applied_ = 0;  // step
  std::vector<std::byte> no_row_;          // zeros
  std::unique_ptr<Table> candidates_;      // ids that are not admitted yet: rows without weights
};

}  // namespace satrap::table
