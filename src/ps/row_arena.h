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
class RowArena {
 public:
  static constexpr std::int64_t kMaxRows = (std::int64_t{1} << 24) - 2;

  explicit RowArena(std::int64_t stride_bytes) : stride_bytes_(stride_bytes) {}

  /// Address of row `number`, whose slab exists.
  RowPointer row(std::int64_t number) const {
    const Place place = place_of(number);
    return slabs_[place.slab].data() + place.offset * stride_bytes_;
  }

  /// Address of the new row `number` (one past the last), zeroed; makes a slab where needed. Throws
  /// Error(kUnavailable) when there is no memory.
  RowPointer add(std::int64_t number) {
    const Place place = place_of(number);
    if (place.offset == 0) slabs_[place.slab] = MemoryBlock(slab_bytes(place.slab));
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
    std::int64_t bytes = 0;
    for (std::size_t slab = 0; first_row(slab) < num_rows; ++slab) {
      const std::int64_t rows = std::min(num_rows - first_row(slab), kFirstSlab << slab);
      const std::int64_t touched = rows * stride_bytes_;
      bytes += MemoryBlock::resident_bytes(slab_bytes(slab), touched);
    }
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

  const std::int64_t stride_bytes_;
  std::array<MemoryBlock, kMaxSlabs> slabs_;
};

}  // namespace satrap::ps
