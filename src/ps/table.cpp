#include "satrap/ps/table.h"

#include <cstring>
#include <utility>

#include "satrap/core/error.h"
#include "src/ps/partition.h"

namespace satrap::ps {
namespace {

constexpr std::int64_t kStrideMultiple = 16;
// Keys between the steps of a lookup (ask for the slot; read it and ask for the row; read the row),
// so that the misses of several keys overlap.
constexpr std::size_t kLookupDistance = 16;

}  // namespace

std::int64_t Table::bytes_of_row(const TableSpec& spec) {
  SATRAP_CHECK(spec.dim > 0, "table '", spec.name, "': dim must be positive, got ", spec.dim);
  const std::int64_t floats = spec.dim + spec.optimizer.state_floats(spec.dim);
  return static_cast<std::int64_t>(sizeof(RowHeader)) +
         floats * static_cast<std::int64_t>(sizeof(float));
}

Table::Table(TableSpec spec, std::uint64_t seed, std::int64_t num_shards)
    : spec_(std::move(spec)),
      table_seed_(RowInit::table_seed(seed, spec_.name)),
      num_shards_(num_shards),
      row_bytes_(bytes_of_row(spec_)),
      stride_bytes_((row_bytes_ + kStrideMultiple - 1) / kStrideMultiple * kStrideMultiple) {
  SATRAP_CHECK(num_shards >= 1, "table '", spec_.name, "': ", num_shards, " shards");
  for (std::int64_t p = 0; p < kPartitions; ++p) {
    partitions_[static_cast<std::size_t>(p)] =
        std::make_unique<Partition>(p, num_shards, stride_bytes_);
  }
}

Table::~Table() = default;

Table::Partition& Table::partition_at(std::int64_t number) const {
  return *partitions_[static_cast<std::size_t>(number)];
}

Table::Partition& Table::partition_with(std::uint64_t position) const {
  return partition_at(partition_at_position(position));
}

void Table::find_or_insert(std::span<const Key> keys, std::span<RowPointer> rows) {
  SATRAP_CHECK(keys.size() == rows.size(), keys.size(), " keys, ", rows.size(), " rows");
  const std::size_t size = keys.size();
  for (std::size_t i = 0; i < size + 2 * kLookupDistance; ++i) {
    if (i < size) {
      const std::uint64_t position = position_of(keys[i]);
      __builtin_prefetch(partition_with(position).index.first_slot(position));
    }
    if (const std::size_t j = i - kLookupDistance; j < size) {
      const std::uint64_t position = position_of(keys[j]);
      const Partition& partition = partition_with(position);
      rows[j] = partition.index.candidate(keys[j], position, partition.arena);
      __builtin_prefetch(rows[j]);
    }
    if (const std::size_t j = i - 2 * kLookupDistance; j < size) {
      if (rows[j] == nullptr || header_of(rows[j]).key != keys[j]) {
        rows[j] = find_or_insert_one(keys[j]);
      }
    }
  }
}

void Table::find(std::span<const Key> keys, std::span<RowPointer> rows) const {
  SATRAP_CHECK(keys.size() == rows.size(), keys.size(), " keys, ", rows.size(), " rows");
  for (std::size_t begin = 0; begin < keys.size();) {
    Partition& partition = partition_with(position_of(keys[begin]));
    const std::lock_guard lock(partition.index_mutex);
    std::size_t end = begin;
    while (end < std::min(keys.size(), begin + 2 * kLookupDistance) &&
           &partition_with(position_of(keys[end])) == &partition) {
      __builtin_prefetch(partition.index.first_slot(position_of(keys[end++])));
    }
    for (std::size_t i = begin; i < end; ++i) {
      rows[i] = partition.index.candidate(keys[i], position_of(keys[i]), partition.arena);
      __builtin_prefetch(rows[i]);
    }
    for (std::size_t i = begin; i < end; ++i) {
      if (rows[i] != nullptr && header_of(rows[i]).key != keys[i]) {
        rows[i] = partition.index.find(keys[i], position_of(keys[i]), partition.arena);
      }
    }
    begin = end;
  }
}

RowPointer Table::find_or_insert_one(Key key) {
  const std::uint64_t position = position_of(key);
  Partition& partition = partition_with(position);
  if (const RowPointer row = partition.index.find(key, position, partition.arena)) return row;
  return append_row(partition, key);
}

RowPointer Table::append_row(Partition& partition, Key key) {
  const std::lock_guard lock(partition.index_mutex);
  const std::int64_t number = partition.num_rows.load(std::memory_order_relaxed);
  if (number == RowArena::kMaxRows) {
    throw Error(ErrorCode::kUnavailable, concat("table '", spec_.name, "' is full: one of its ",
                                                kPartitions, " partitions has ", number, " rows"));
  }
  partition.index.reserve(key, partition.arena);
  const RowPointer row = partition.arena.add(number);
  initialize_row(key, row);
  partition.index.insert(key, number);
  partition.index_bytes.store(partition.index.resident_bytes(), std::memory_order_relaxed);
  partition.num_rows.store(number + 1, std::memory_order_release);
  return row;
}

void Table::initialize_row(Key key, RowPointer row) const {
  header_of(row) = {.key = key, .last_step = 0, .count = 0};
  float* weights = weights_of(row);
  spec_.init.fill(table_seed_, key, {weights, static_cast<std::size_t>(spec_.dim)});
  spec_.optimizer.initialize_state(weights, weights + spec_.dim, spec_.dim);
}

std::unique_lock<std::mutex> Table::lock_for_update(std::int64_t partition_number,
                                                    std::span<const RowPointer> rows) {
  Partition& partition = partition_at(partition_number);
  std::unique_lock lock(partition.rows_mutex);
  if (partition.snapshot == nullptr) return lock;
  Partition::Snapshot& snapshot = *partition.snapshot;
  for (const RowPointer row : rows) {
    const std::uint32_t last_step = header_of(row).last_step;
    if (last_step == 0 || last_step > snapshot.step) continue;
    if (partition.arena.number_of(row, snapshot.end) < snapshot.cursor) continue;
    snapshot.aside.insert(snapshot.aside.end(), row, row + row_bytes_);
  }
  return lock;
}

void Table::restore(std::span<const std::byte> rows) {
  SATRAP_CHECK(rows.size() % static_cast<std::size_t>(row_bytes_) == 0, "table '", spec_.name,
               "': ", rows.size(), " bytes are no whole number of rows of ", row_bytes_);
  for (const std::byte* from = rows.data(); from != rows.data() + rows.size(); from += row_bytes_) {
    RowHeader header;
    std::memcpy(&header, from, sizeof(header));
    const std::uint64_t table_bits = static_cast<std::uint64_t>(spec_.id) << kIdBits;
    header.key = static_cast<Key>(table_bits | mixed_id_of(header.key));
    const std::uint64_t position = position_of(header.key);
    Partition& partition = partition_with(position);
    if (partition.index.find(header.key, position, partition.arena) != nullptr) {
      throw Error(ErrorCode::kCorrupt,
                  concat("table '", spec_.name, "': two rows for id ", id_of(header.key)));
    }
    const RowPointer row = append_row(partition, header.key);
    std::memcpy(row, from, static_cast<std::size_t>(row_bytes_));
    header_of(row) = header;
  }
}

void Table::for_each_row(const std::function<void(const std::byte* row)>& visit) const {
  for (std::int64_t p = 0; p < kPartitions; ++p) {
    const Partition& partition = partition_at(p);
    const std::int64_t num_rows = partition.num_rows.load(std::memory_order_acquire);
    for (std::int64_t i = 0; i < num_rows; ++i) visit(partition.arena.row(i));
  }
}

std::int64_t Table::num_rows() const {
  std::int64_t sum = 0;
  for (std::int64_t p = 0; p < kPartitions; ++p) {
    sum += partition_at(p).num_rows.load(std::memory_order_relaxed);
  }
  return sum;
}

std::int64_t Table::resident_bytes() const {
  std::int64_t sum = 0;
  for (std::int64_t p = 0; p < kPartitions; ++p) {
    const Partition& partition = partition_at(p);
    sum += partition.arena.resident_bytes(partition.num_rows.load(std::memory_order_relaxed)) +
           partition.index_bytes.load(std::memory_order_relaxed);
  }
  return sum + static_cast<std::int64_t>(sizeof(Partition)) * kPartitions;
}

}  // namespace satrap::ps
