#pragma once

#include <cstdint>

#include "satrap/core/ids.h"
#include "satrap/ps/table.h"
#include "src/ps/memory_block.h"
#include "src/ps/row_arena.h"

namespace satrap::ps {

/// Key -> row number for one partition: open addressing with linear probing over slots of 4 bytes,
/// 8 bits of tag and 24 of row number. The place comes from the highest bits of the mixed id that
/// the partitions do not share, so ascending keys walk the index in order; the tag from the lowest.
/// A tag that matches is confirmed by the key in the row's header.
class RowIndex {
 public:
  /// The index grows when more than `max_load` of its slots would be taken. Before the first key.
  void set_max_load(double max_load) { max_load_ = max_load; }

  /// Row of `key`, or nullptr.
  RowPointer find(Key key, const RowArena& arena) const {
    if (num_slots_ == 0) return nullptr;
    for (std::int64_t place = place_of(key);; place = (place + 1) & (num_slots_ - 1)) {
      const std::uint32_t slot = slots()[place];
      if (slot == 0) return nullptr;
      if ((slot ^ tag_of(key)) > kRowMask) continue;
      const RowPointer row = arena.row((slot & kRowMask) - 1);
      if (header_of(row).key == key) return row;
    }
  }

  /// The two halves of find, to be done for several keys in turn: prefetch() asks for the first
  /// slot, candidate() is the first row whose tag matches (and which is most probably the one), or
  /// nullptr.
  void prefetch(Key key) const {
    if (num_slots_ != 0) __builtin_prefetch(slots() + place_of(key));
  }
  RowPointer candidate(Key key, const RowArena& arena) const {
    if (num_slots_ == 0) return nullptr;
    for (std::int64_t place = place_of(key);; place = (place + 1) & (num_slots_ - 1)) {
      const std::uint32_t slot = slots()[place];
      if (slot == 0) return nullptr;
      if ((slot ^ tag_of(key)) <= kRowMask) return arena.row((slot & kRowMask) - 1);
    }
  }

  /// Makes room for one more than `num_rows` rows: the first `num_rows` of `arena` are what the
  /// index holds. Throws Error(kUnavailable) when there is no memory; the index is then as before.
  void reserve_one_more(std::int64_t num_rows, const RowArena& arena) {
    if (num_rows < max_rows_) return;
    grow(num_rows, arena);
  }

  /// Adds a key that is missing, after reserve_one_more.
  void insert(Key key, std::int64_t row_number) {
    std::int64_t place = place_of(key);
    while (slots()[place] != 0) place = (place + 1) & (num_slots_ - 1);
    slots()[place] = tag_of(key) | static_cast<std::uint32_t>(row_number + 1);
  }

  std::int64_t num_slots() const { return num_slots_; }

  /// Memory of an index of `num_slots`, which are touched all over.
  static std::int64_t resident_bytes(std::int64_t num_slots) {
    const std::int64_t bytes = num_slots * static_cast<std::int64_t>(sizeof(std::uint32_t));
    return MemoryBlock::resident_bytes(bytes, bytes);
  }

 private:
  static constexpr int kRowBits = 24;
  static constexpr std::uint32_t kRowMask = (std::uint32_t{1} << kRowBits) - 1;
  static constexpr int kFirstPlaceBit = 64 - kIdBits + Table::kPartitionBits;

  std::uint32_t* slots() const { return reinterpret_cast<std::uint32_t*>(block_.data()); }
  std::int64_t place_of(Key key) const {
    return static_cast<std::int64_t>((static_cast<std::uint64_t>(key) << kFirstPlaceBit) >> shift_);
  }
  static std::uint32_t tag_of(Key key) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(key)) << kRowBits;
  }
  void grow(std::int64_t num_rows, const RowArena& arena);

  double max_load_ = 0.7;
  MemoryBlock block_;
  std::int64_t num_slots_ = 0;  // a power of two, or 0
  std::int64_t max_rows_ = 0;   // held without growing
  int shift_ = 0;               // 64 - log2(num_slots_)
};

}  // namespace satrap::ps
