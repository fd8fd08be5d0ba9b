#include "satrap/table/table_snapshot.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "satrap/core/error.h"
#include "src/table/partition.h"

namespace satrap::table {
namespace {

// Updates of a partition wait at most for the copy of one block.
constexpr std::int64_t kSnapshotBlockBytes = std::int64_t{256} << 10;

}  // namespace

TableSnapshot::TableSnapshot(Table& table, std::int64_t step) : table_(table), step_(step) {
  for (std::int64_t p = 0; p < kPartitions; ++p) {
    Table::Partition& partition = table_.partition_numbered(p);
    auto snapshot = std::make_unique<Table::Partition::Snapshot>();
    snapshot->step = step;
    snapshot->end = partition.num_rows.load(std::memory_order_acquire);
    max_rows_ += snapshot->end;
    const MutexLock index_lock(partition.index_mutex);
    const MutexLock lock(partition.rows_mutex);
    for (const auto& gone : partition.departed) {  // plans are ahead: later ones still belong to it
      if (gone.step <= step) header_of(partition.arena.row(gone.number)).last_step = 0;
    }
    SATRAP_CHECK(partition.snapshot == nullptr, "table '", table_.spec().name,
                 "': a second snapshot before the first has ended");
    partition.snapshot = std::move(snapshot);
  }
  if (!table_.candidates_) return;
  candidates_ = std::make_unique<TableSnapshot>(*table_.candidates_, step);
  max_rows_ += candidates_->max_rows();
}

TableSnapshot::~TableSnapshot() {
  for (std::int64_t p = 0; p < kPartitions; ++p) {
    Table::Partition& partition = table_.partition_numbered(p);
    const MutexLock lock(partition.rows_mutex);
    partition.snapshot.reset();
  }
}

std::int64_t TableSnapshot::write(
    const std::function<void(std::span<const std::byte> rows)>& sink) {
  const std::int64_t rows_per_block =
      std::max<std::int64_t>(1, kSnapshotBlockBytes / table_.row_bytes());
  std::vector<std::byte> block, aside;
  block.reserve(static_cast<std::size_t>(rows_per_block * table_.row_bytes()));
  std::int64_t bytes = 0;
  const auto hand_out = [&](const std::vector<std::byte>& rows) {
    if (rows.empty()) return;
    bytes += static_cast<std::int64_t>(rows.size());
    sink(rows);
  };
  for (std::int64_t p = 0; p < kPartitions; ++p) {
    Table::Partition& partition = table_.partition_numbered(p);
    for (bool done = false; !done;) {
      block.clear();
      aside.clear();
      {
        const MutexLock lock(partition.rows_mutex);
        SATRAP_CHECK(partition.snapshot != nullptr, "table '", table_.spec().name,
                     "': a snapshot is written once");
        Table::Partition::Snapshot& snapshot = *partition.snapshot;
        const std::int64_t stop = std::min(snapshot.end, snapshot.cursor + rows_per_block);
        for (; snapshot.cursor < stop; ++snapshot.cursor) {
          const RowPointer row = partition.arena.row(snapshot.cursor);
          const std::uint32_t last_step = header_of(row).last_step;
          if (last_step == 0 || last_step > step_) continue;
          if (!snapshot.replaced.empty() && snapshot.replaced.contains(snapshot.cursor)) continue;
          block.insert(block.end(), row, row + table_.row_bytes());
        }
        std::swap(aside, snapshot.aside);
        done = snapshot.cursor == snapshot.end;
        if (done) partition.snapshot.reset();
      }
      hand_out(block);
      hand_out(aside);
    }
  }
  const std::int64_t num_candidates = candidates_ ? write_candidates(sink) : 0;
  return bytes / table_.row_bytes() + num_candidates;
}

std::int64_t TableSnapshot::write_candidates(const Sink& sink) {
  const auto row_bytes = static_cast<std::size_t>(table_.row_bytes());
  std::vector<std::byte> rows;
  return candidates_->write([&](std::span<const std::byte> headers) {
    const std::size_t count = headers.size() / sizeof(RowHeader);
    rows.assign(count * row_bytes, std::byte{});
    for (std::size_t i = 0; i < count; ++i) {
      RowHeader header;
      std::memcpy(&header, headers.data() + i * sizeof(header), sizeof(header));
      header.count |= kCandidateFlag;
      std::memcpy(rows.data() + i * row_bytes, &header, sizeof(header));
    }
    sink(rows);
  });
}

}  // namespace satrap::table
