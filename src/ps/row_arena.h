#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "satrap/ps/row.h"
#include "src/ps/memory_block.h"

namespace satrap::ps {

/// The rows of one partition by number: slab s holds the rows [kFirstSlab * (2^s - 1),
/// kFirstSlab * (2^(s+1) - 1)). A row never moves. Rows that exist may be addressed by any thread
/// while one thread adds rows.
///
/// The first write to a huge page has to wait until the system has cleared it, a fraction of a
/// millisecond, or several where a virtual machine has to get it first. Pages are therefore written
/// to `lead_bytes` ahead of the rows. Partitions have about as many rows as one another: with a
/// lead of its own each gets its page in another step than the others.
class RowArena {
 public:
  static constexpr std::int64_t kMaxRows = (std::int64_t{1} << 24) - 2;

  explicit RowArena(std::int64_t stride_bytes, std::int64_t lead_bytes = 0)
      : stride_bytes_(stride_bytes), lead_bytes_(lead_bytes) {}

  /// Address of row `number`, whose slab exists.
  RowPointer row(std::int64_t number) const {
    const Place place = place_of(number);
    return slabs_[place.slab].data() + place.offset * stride_bytes_;
  }

  /// Address of the new row `number` (one past the last), zeroed; makes a slab where needed. Throws
  /// Error(kUnavailable) when there is no memory.
  RowPointer add(std::int64_t number) {
    const Place place = place_of(number);
    make_slab(place.slab);
    touch_ahead(place);
    return slabs_[place.slab].data() + place.offset * stride_bytes_;
  }

  /// Number of the row at `address` if it is in a slab of the first `num_rows` > 0 rows, else -1.
  std::int64_t number_of(const std::byte* address, std::int64_t num_rows) const {
    for (std::size_t slab = place_of(num_rows - 1).slab + 1;
         slab-- > 0;) {  // most rows are in the last
      const auto begin = reinterpret_cast<std::uintptr_t>(slabs_[slab].data());
      const auto offset = reinterpret_cast<std::uintptr_t>(address) - begin;
      if (offset < static_cast<std::uintptr_t>(slab_bytes(slab))) {
        return first_row(slab) + static_cast<std::int64_t>(offset) / stride_bytes_;
      }
    }
    return -1;
  }

  std::int64_t resident_bytes(std::int64_t num_rows) const {
    std::int64_t bytes = 0, ahead = 0;
    std::size_t slab = 0;
    for (; first_row(slab) < num_rows; ++slab) {
      const std::int64_t rows = std::min(num_rows - first_row(slab), kFirstSlab << slab);
      const std::int64_t touched = rows * stride_bytes_ + (is_huge(slab) ? lead_bytes_ : 0);
      bytes += MemoryBlock::resident_bytes(slab_bytes(slab), touched);
      ahead = rows * stride_bytes_ + lead_bytes_ - slab_bytes(slab);
    }
    if (ahead > 0 && is_huge(slab)) bytes += MemoryBlock::resident_bytes(slab_bytes(slab), ahead);
    return bytes;
  }

 private:
  static constexpr int kFirstSlabBits = 3;
  static constexpr std::int64_t kFirstSlab = std::int64_t{1} << kFirstSlabBits;
  static constexpr std::size_t kMaxSlabs = 24 - kFirstSlabBits + 1;

  struct Place {
    std::size_t slab;
    std::int64_t offset;
  };
  static Place place_of(std::int64_t number) {
    const auto shifted = static_cast<std::uint64_t>(number + kFirstSlab);
    const int log2 = static_cast<int>(std::bit_width(shifted)) - 1;
    return {static_cast<std::size_t>(log2 - kFirstSlabBits),
            static_cast<std::int64_t>(shifted ^ (std::uint64_t{1} << log2))};
  }
  static std::int64_t first_row(std::size_t slab) { return (kFirstSlab << slab) - kFirstSlab; }
  std::int64_t slab_bytes(std::size_t slab) const { return (kFirstSlab << slab) * stride_bytes_; }
  bool is_huge(std::size_t slab) const {
    return slab < kMaxSlabs && slab_bytes(slab) >= MemoryBlock::kHugeBytes;
  }
  void make_slab(std::size_t slab) {
    if (slabs_[slab].data() == nullptr) slabs_[slab] = MemoryBlock(slab_bytes(slab));
  }
  void touch_ahead(Place place) {
    const std::int64_t reach = (place.offset + 1) * stride_bytes_ + lead_bytes_;
    const std::int64_t beyond = reach - slab_bytes(place.slab);
    if (beyond > 0) {
      touch(place.slab + 1, beyond);
    } else {
      touch(place.slab, reach);
    }
  }
  /// The page with the last of the first `bytes` of a slab. No row is there yet, or only a new one.
  void touch(std::size_t slab, std::int64_t bytes) {
    if (!is_huge(slab)) return;
    const std::int64_t page = (bytes - 1) / MemoryBlock::kHugePageBytes;
    if (slab < touched_slab_ || (slab == touched_slab_ && page <= touched_page_)) return;
    make_slab(slab);
    slabs_[slab].data()[page * MemoryBlock::kHugePageBytes] = std::byte{0};
    touched_slab_ = slab;
    touched_page_ = page;
  }

  const std::int64_t stride_bytes_, lead_bytes_;
  std::size_t touched_slab_ = 0;  // and all before
  std::int64_t touched_page_ = -1;
  std::array<MemoryBlock, kMaxSlabs> slabs_;
};

}  // namespace satrap::ps
