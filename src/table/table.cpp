#include "satrap/table/table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include "satrap/core/error.h"
#include "src/table/partition.h"

namespace satrap::table {
namespace {

// Keys between the stages of a lookup (prefetch the entry; read it and prefetch the row; read the
// row), so that the misses of several keys overlap.
constexpr std::size_t kLookupDistance = 16;
constexpr std::size_t kUsualDim = 256;  // up to it, new rows are made without allocating

}  // namespace

Table::Table(TableSpec spec, std::uint64_t seed, std::int64_t num_shards)
    : spec_(std::move(spec)),
      layout_(spec_.layout()),
      table_seed_(RowInit::table_seed(seed, spec_.name)),
      num_shards_(num_shards),
      memory_(std::make_shared<RowMemory>(layout_.row_bytes, kPartitions)),
      no_row_(static_cast<std::size_t>(layout_.row_bytes)) {
  SATRAP_CHECK(num_shards >= 1, "table '", spec_.name, "': ", num_shards, " shards");
  for (std::int64_t p = 0; p < kPartitions; ++p) {
    partitions_[static_cast<std::size_t>(p)] =
        std::make_unique<Partition>(p, num_shards, memory_, spec_.limits);
  }
  if (spec_.limits.admit_after <= 1) return;
  TableSpec candidates;
  candidates.name = spec_.name;
  candidates.id = spec_.id;
  candidates.optimizer.type = RowOptimizerType::kSgd;
  candidates.limits = spec_.limits;
  candidates.limits.admit_after = 1;
  candidates_ = std::make_unique<Table>(std::move(candidates), seed, num_shards);
}

Table::~Table() = default;

Table::Partition& Table::partition_numbered(std::int64_t number) const {
  return *partitions_[static_cast<std::size_t>(number)];
}

Table::Partition& Table::partition_with(std::uint64_t position) const {
  return partition_numbered(partition_at(position));
}

void Table::begin_step(std::int64_t partition_number, std::int64_t step) {
  if (!spec_.limits.any()) return;
  if (candidates_) candidates_->begin_step(partition_number, step);
  Partition& partition = partition_numbered(partition_number);
  if (step <= partition.begun_step) return;
  partition.begun_step = step;
  const MutexLock lock(partition.index_mutex);
  partition.free_departed(step - spec_.limits.pinned_steps, row_bytes());
  const auto chosen = partition.ages->choose(
      step, [&](std::int64_t number) { return header_of(partition.arena.row(number)).key; });
  for (const RowAges::Row& row : chosen) {
    partition.index.erase(row.key, row.number);
    partition.departed.push_back({step, row.number});
  }
  partition.num_gone.fetch_add(std::ssize(chosen), std::memory_order_relaxed);
}

void Table::note_applied(std::int64_t step) {
  if (candidates_) candidates_->note_applied(step);
  std::int64_t seen = applied_.load();
  while (seen < step && !applied_.compare_exchange_weak(seen, step)) {
  }
}

void Table::find_or_insert(std::span<const Key> keys,
                           std::span<RowPointer> rows,
                           std::int64_t step) {
  SATRAP_CHECK(keys.size() == rows.size(), keys.size(), " keys, ", rows.size(), " rows");
  const std::size_t size = keys.size();
  for (std::size_t i = 0; i < size + 2 * kLookupDistance; ++i) {
    if (i < size) {
      const std::uint64_t position = position_of(keys[i]);
      __builtin_prefetch(partition_with(position).index.first_entry(position));
    }
    if (const std::size_t j = i - kLookupDistance; j < size) {
      const std::uint64_t position = position_of(keys[j]);
      const Partition& partition = partition_with(position);
      rows[j] = partition.index.candidate(keys[j], position, partition.arena);
      __builtin_prefetch(rows[j]);
    }
    if (const std::size_t j = i - 2 * kLookupDistance; j < size) {
      if (rows[j] == nullptr || header_of(rows[j]).key != keys[j]) {
        rows[j] = find_or_insert_one(keys[j], step);
      } else if (spec_.limits.any()) {
        Partition& partition = partition_with(position_of(keys[j]));
        partition.ages->touch(partition.number_of(rows[j]), step);
      }
    }
  }
}

void Table::find(std::span<const Key> keys, std::span<RowPointer> rows) const {
  find_in_index(keys, rows);
  if (spec_.limits.any()) find_departed(keys, rows);
  if (!candidates_) return;
  for (RowPointer& row : rows) {  // admitted by a plan that is ahead
    if (row != nullptr && header_of(row).last_step == 0) row = nullptr;
  }
}

void Table::find_in_index(std::span<const Key> keys, std::span<RowPointer> rows) const {
  SATRAP_CHECK(keys.size() == rows.size(), keys.size(), " keys, ", rows.size(), " rows");
  for (std::size_t begin = 0; begin < keys.size();) {
    Partition& partition = partition_with(position_of(keys[begin]));
    const MutexLock lock(partition.index_mutex);
    std::size_t end = begin;
    while (end < std::min(keys.size(), begin + 2 * kLookupDistance) &&
           &partition_with(position_of(keys[end])) == &partition) {
      __builtin_prefetch(partition.index.first_entry(position_of(keys[end++])));
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

/// For readers of the rows as of the last applied step, while plans are ahead: finds rows that were
/// evicted since.
void Table::find_departed(std::span<const Key> keys, std::span<RowPointer> rows) const {
  const std::int64_t applied = applied_;
  std::unordered_map<Key, RowPointer> departed;
  const Partition* current = nullptr;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Partition& partition = partition_with(position_of(keys[i]));
    if (&partition != current) {
      current = &partition;
      departed.clear();
      const MutexLock lock(partition.index_mutex);
      for (const Partition::Departed& gone : partition.departed) {
        const RowPointer row = partition.arena.row(gone.number);
        if (gone.step > applied) departed.try_emplace(header_of(row).key, row);
      }
    }
    if (const auto found = departed.find(keys[i]); found != departed.end()) rows[i] = found->second;
  }
}

RowPointer Table::find_or_insert_one(Key key, std::int64_t step) {
  const std::uint64_t position = position_of(key);
  Partition& partition = partition_with(position);
  const RowPointer row = partition.index.find(key, position, partition.arena);
  if (row == nullptr) {
    const bool is_admitted =
        !candidates_ || candidates_->sight(key, step, spec_.limits.admit_after);
    return is_admitted ? append_row(partition, key, step) : no_row_.data();
  }
  if (partition.ages) partition.ages->touch(partition.number_of(row), step);
  return row;
}

/// Counts a candidate, once per step for all ranks, and tells whether `step` admits its id.
bool Table::sight(Key key, std::int64_t step, std::int64_t admit_after) {
  const std::uint64_t position = position_of(key);
  Partition& partition = partition_with(position);
  const RowPointer found = partition.index.find(key, position, partition.arena);
  if (found == nullptr) {
    const RowPointer row = append_row(partition, key, step);
    partition.sightings_of(partition.number_of(row)) = 1;
    return false;
  }
  const std::int64_t number = partition.number_of(found);
  if (partition.ages->step_of(number) == step) return false;
  std::uint32_t& sightings = partition.sightings_of(number);
  if (sightings + 1 >= admit_after) return true;
  ++sightings;
  partition.ages->touch(number, step);
  return false;
}

void Table::apply_sightings(std::int64_t step,
                            std::span<const Key> keys,
                            std::span<const RowPointer> rows) {
  if (!candidates_) return;
  constexpr std::size_t kBlock = 64;
  std::array<Key, kBlock> sighted;
  for (std::size_t i = 0; i < keys.size();) {
    std::size_t n = 0;
    for (; i < keys.size() && n < kBlock; ++i) {
      if (rows[i] == no_row_.data()) sighted[n++] = keys[i];
    }
    std::array<RowPointer, kBlock> found;
    candidates_->find_in_index(std::span(sighted).first(n), std::span(found).first(n));
    for (std::size_t j = 0; j < n; ++j) {
      if (header_of(found[j]).last_step == step) continue;  // by another rank
      candidates_->update_partition(partition_of(sighted[j], num_shards_), step, {&found[j], 1},
                                    [](auto, auto) {});
    }
  }
}

void Table::restore_sightings(const RowHeader& header) {
  Partition& partition = partition_with(position_of(header.key));
  const RowPointer row = append_row(partition, header.key, std::max(1U, header.last_step));
  header_of(row) = header;
  partition.sightings_of(partition.number_of(row)) = header.count;
}

RowPointer Table::append_row(Partition& partition, Key key, std::int64_t step) {
  const MutexLock lock(partition.index_mutex);
  const std::int64_t end = partition.num_rows.load(std::memory_order_relaxed);
  const bool is_reused = !partition.free.empty();
  if (!is_reused && end == RowArena::kMaxRows) {
    throw Error(ErrorCode::kUnavailable, concat("table '", spec_.name, "' is full: one of its ",
                                                kPartitions, " partitions has ", end, " rows"));
  }
  partition.index.reserve(key, partition.arena);
  const std::int64_t number = is_reused ? partition.free.back() : end;
  const RowPointer row = is_reused ? partition.arena.row(number) : partition.arena.add(number);
  if (is_reused) partition.prefetch_free(layout_.row_bytes);
  if (is_reused) {
    const MutexLock rows_lock(partition.rows_mutex);  // a snapshot may be reading it
    initialize_row(key, row);
  } else {
    initialize_row(key, row);
  }
  if (partition.ages) partition.ages->add(key, number, step);
  partition.index.insert(key, number);
  partition.index_bytes.store(
      partition.index.resident_bytes() + (partition.ages ? partition.ages->resident_bytes() : 0),
      std::memory_order_relaxed);
  if (is_reused) {
    partition.free.pop_back();
    partition.num_gone.fetch_sub(1, std::memory_order_relaxed);
  } else {
    partition.num_rows.store(number + 1, std::memory_order_release);
  }
  return row;
}

void Table::initialize_row(Key key, RowPointer row) const {
  std::memset(row, 0, static_cast<std::size_t>(row_bytes()));
  header_of(row) = {.key = key, .last_step = 0, .count = 0};
  const auto dim = static_cast<std::size_t>(spec_.dim);
  const auto initialize_state = [&](const float* weights) {
    spec_.optimizer.initialize_state(weights, layout_.state_of(row), spec_.dim);
  };
  if (spec_.weights == FloatType::kFp32) {
    spec_.init.fill(table_seed_, key, {weights_of(row), dim});
    initialize_state(weights_of(row));
    return;
  }
  std::array<float, kUsualDim> usual;
  std::vector<float> large(dim > kUsualDim ? dim : 0);
  float* const weights = large.empty() ? usual.data() : large.data();
  spec_.init.fill(table_seed_, key, {weights, dim});
  layout_.write_nearest(weights, row);
  layout_.read_weights(row, weights);  // the state must fit the stored weights
  initialize_state(weights);
}

void Table::fill_missing(Key key, RowPointer row) const {
  if (candidates_) {
    std::memset(row, 0, static_cast<std::size_t>(row_bytes()));
  } else {
    initialize_row(key, row);
  }
}

Mutex& Table::rows_mutex(std::int64_t partition_number) const {
  return partition_numbered(partition_number).rows_mutex;
}

void Table::copy_aside(std::int64_t partition_number, std::span<const RowPointer> rows) {
  Partition& partition = partition_numbered(partition_number);
  partition.rows_mutex.assert_held();
  partition.copy_aside(rows, row_bytes());
}

void Table::replace_partition(std::int64_t partition_number,
                              std::span<const RowPointer> rows,
                              std::span<const std::byte* const> from) {
  Partition& partition = partition_numbered(partition_number);
  change_rows(partition_number, rows, [&](std::size_t i) {
    partition.rows_mutex.assert_held();
    if (partition.snapshot != nullptr) {
      Partition::Snapshot& snapshot = *partition.snapshot;
      const std::int64_t number = partition.arena.number_of(rows[i], snapshot.end);
      if (number >= snapshot.cursor) snapshot.replaced.insert(number);
    }
    std::memcpy(rows[i], from[i], static_cast<std::size_t>(row_bytes()));
  });
}

void Table::restore(std::span<const std::byte> rows) {
  SATRAP_CHECK(rows.size() % static_cast<std::size_t>(row_bytes()) == 0, "table '", spec_.name,
               "': ", rows.size(), " bytes are not a whole number of rows of ", row_bytes());
  for (const std::byte* from = rows.data(); from != rows.data() + rows.size();
       from += row_bytes()) {
    RowHeader header;
    std::memcpy(&header, from, sizeof(header));
    const std::uint64_t table_bits = static_cast<std::uint64_t>(spec_.id) << kIdBits;
    header.key = static_cast<Key>(table_bits | mixed_id_of(header.key));
    if ((header.count & kCandidateFlag) != 0) {
      header.count &= ~kCandidateFlag;
      if (candidates_) candidates_->restore_sightings(header);
      continue;
    }
    const std::uint64_t position = position_of(header.key);
    Partition& partition = partition_with(position);
    if (partition.index.find(header.key, position, partition.arena) != nullptr) {
      throw Error(ErrorCode::kCorrupt,
                  concat("table '", spec_.name, "': two rows for id ", id_of(header.key)));
    }
    const RowPointer row = append_row(partition, header.key, std::max(1U, header.last_step));
    std::memcpy(row, from, static_cast<std::size_t>(row_bytes()));
    header_of(row) = header;
  }
}

void Table::for_each_row(const std::function<void(const std::byte* row)>& visit) const {
  for (std::int64_t p = 0; p < kPartitions; ++p) {
    Partition& partition = partition_numbered(p);
    const std::int64_t num_rows = partition.num_rows.load(std::memory_order_acquire);
    std::vector<bool> is_gone(static_cast<std::size_t>(num_rows));
    {
      const MutexLock lock(partition.index_mutex);
      for (const std::uint32_t number : partition.free) is_gone[number] = true;
      for (const auto& gone : partition.departed) {
        is_gone[static_cast<std::size_t>(gone.number)] = true;
      }
    }
    for (std::int64_t i = 0; i < num_rows; ++i) {
      if (!is_gone[static_cast<std::size_t>(i)]) visit(partition.arena.row(i));
    }
  }
}

void Table::register_blocks(RegisterBlock function) {
  memory_->register_blocks(std::move(function));
}

bool Table::is_registered() const { return memory_->is_registered(); }

std::int64_t Table::num_rows() const {
  std::int64_t sum = 0;
  for (std::int64_t p = 0; p < kPartitions; ++p) {
    const Partition& partition = partition_numbered(p);
    sum += partition.num_rows.load(std::memory_order_relaxed) -
           partition.num_gone.load(std::memory_order_relaxed);
  }
  return sum;
}

std::int64_t Table::resident_bytes() const {
  std::int64_t sum = 0;
  for (std::int64_t p = 0; p < kPartitions; ++p) {
    const Partition& partition = partition_numbered(p);
    sum += partition.arena.resident_bytes(partition.num_rows.load(std::memory_order_relaxed)) +
           partition.index_bytes.load(std::memory_order_relaxed);
  }
  if (candidates_) sum += candidates_->resident_bytes();
  return sum + memory_->registered_bytes() +
         static_cast<std::int64_t>(sizeof(Partition)) * kPartitions;
}

}  // namespace satrap::table
