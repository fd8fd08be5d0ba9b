#include "src/table/partition.h"

namespace satrap::table {

void Table::Partition::free_departed(std::int64_t last_step, std::int64_t row_bytes) {
  constexpr std::size_t kLookAhead = 8;
  while (!departed.empty() && departed.front().step <= last_step) {
    const MutexLock lock(rows_mutex);
    for (std::size_t i = 0; i < kRowsPerLock; ++i) {
      if (departed.empty() || departed.front().step > last_step) return;
      const std::int64_t number = departed.front().number;
      const RowPointer row = arena.row(number);
      if (departed.size() > kLookAhead) {
        __builtin_prefetch(arena.row(departed[kLookAhead].number), 1);
      }
      copy_aside({&row, 1}, row_bytes);
      header_of(row).last_step = 0;  // ignored by snapshots
      free.push_back(static_cast<std::uint32_t>(number));
      departed.pop_front();
    }
  }
}

void Table::Partition::copy_aside(std::span<const RowPointer> rows, std::int64_t row_bytes) {
  if (snapshot == nullptr) return;
  for (const RowPointer row : rows) {
    const std::uint32_t last_step = header_of(row).last_step;
    if (last_step == 0 || last_step > snapshot->step) continue;
    const std::int64_t number = arena.number_of(row, snapshot->end);
    if (number < snapshot->cursor || snapshot->replaced.contains(number)) continue;
    snapshot->aside.insert(snapshot->aside.end(), row, row + row_bytes);
  }
}

}  // namespace satrap::table
