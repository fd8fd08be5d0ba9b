#include "src/ps/row_index.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace satrap::ps {

void RowIndex::grow(std::int64_t num_rows, const RowArena& arena) {
  constexpr std::int64_t kFirstSlots = 16;
  const std::int64_t num_slots = std::max(kFirstSlots, num_slots_ * 2);
  MemoryBlock block(num_slots * static_cast<std::int64_t>(sizeof(std::uint32_t)));
  std::swap(block_, block);
  num_slots_ = num_slots;
  max_rows_ = static_cast<std::int64_t>(static_cast<double>(num_slots) * max_load_);
  shift_ = 64 - std::countr_zero(static_cast<std::uint64_t>(num_slots));
  // In row order the keys are read in sequence, and the slots are written at random in what is
  // small enough for the caches; the other way round the rows would be read at random.
  constexpr std::int64_t kAhead = 16;
  for (std::int64_t row = 0; row < num_rows; ++row) {
    if (row + kAhead < num_rows) __builtin_prefetch(arena.row(row + kAhead));
    insert(header_of(arena.row(row)).key, row);
  }
}

}  // namespace satrap::ps
