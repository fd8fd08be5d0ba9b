#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

#include "satrap/core/mutex.h"
#include "satrap/table/register_block.h"
#include "satrap/table/row.h"
#include "src/table/memory_block.h"

namespace satrap::table {

/// Memory for the rows of all partitions of a table, by their numbers within the partition. A row
/// never moves. Block b has room for rows [kFirstRows * (2^b - 1), kFirstRows * (2^(b+1) - 1)) of
/// each partition, as stretches of up to kStretchRows rows: one of every partition, then the next
/// of every partition. Partitions have about equally many rows, so a block fills from its front:
/// even a small table's rows share few huge pages, and a growing table needs a new page from time
/// to time, never one for each partition at once.
class RowMemory {
 public:
  static constexpr std::int64_t kMaxRows = (std::int64_t{1} << 24) - 2;  // of a partition

  RowMemory(std::int64_t stride_bytes, std::int64_t num_partitions);  // a power of two

  /// Address of a row whose block exists; `number` >= 0, here and below. Any thread.
  RowPointer row(std::int64_t partition, std::int64_t number) const {
    const Place place = place_of(number);
    return bases_[place.block].load(std::memory_order_acquire) +
           index_of(place, partition) * stride_bytes_;
  }

  /// Address of the new row `number` (one past the last of its partition), zeroed; creates a block
  /// if needed. One thread at a time per partition. Throws Error(kUnavailable) if memory is
  /// exhausted.
  RowPointer add(std::int64_t partition, std::int64_t number) {
    const std::size_t block = place_of(number).block;
    if (bases_[block].load(std::memory_order_acquire) == nullptr) make_block(block);
    return row(partition, number);
  }

  /// Number of the row at `address` if it is in a block of the first `num_rows` rows of its
  /// partition, else -1.
  std::int64_t number_of(const std::byte* address, std::int64_t num_rows) const;

  /// As Table.
  void register_blocks(RegisterBlock function);
  bool is_registered() const { return is_registered_.load(std::memory_order_acquire); }

  /// The memory of one partition with `num_rows` rows, but in registered blocks.
  std::int64_t resident_bytes(std::int64_t num_rows) const;

  /// Registered blocks are resident as a whole.
  std::int64_t registered_bytes() const;

 private:
  static constexpr int kFirstBits = 3;
  static constexpr int kMaxStretchBits = 6;
  static constexpr std::int64_t kFirstRows = std::int64_t{1} << kFirstBits;
  static constexpr std::size_t kMaxBlocks = 24 - kFirstBits + 1;

  struct Place {
    std::size_t block;
    std::int64_t offset;  // in rows, among those of the partition
  };
  static Place place_of(std::int64_t number) {
    if (number < 0) __builtin_unreachable();  // otherwise GCC 14 warns of blocks before the first
    const auto shifted = static_cast<std::uint64_t>(number + kFirstRows);
    const int log2 = static_cast<int>(std::bit_width(shifted)) - 1;
    return {static_cast<std::size_t>(log2 - kFirstBits),
            static_cast<std::int64_t>(shifted ^ (std::uint64_t{1} << log2))};
  }
  static int stretch_bits(std::size_t block) {
    return block < kMaxStretchBits - kFirstBits ? kFirstBits + static_cast<int>(block)
                                                : kMaxStretchBits;
  }
  std::int64_t index_of(Place place, std::int64_t partition) const {
    const int bits = stretch_bits(place.block);
    const std::int64_t stretch = place.offset >> bits << partition_bits_ | partition;
    return stretch << bits | (place.offset & ((std::int64_t{1} << bits) - 1));
  }
  static std::int64_t first_row(std::size_t block) { return (kFirstRows << block) - kFirstRows; }
  std::int64_t bytes_of_partition(std::size_t block) const {
    return (kFirstRows << block) * stride_bytes_;
  }
  std::int64_t bytes_of(std::size_t block) const {
    return bytes_of_partition(block) << partition_bits_;
  }
  void make_block(std::size_t block);
  void register_block(std::size_t block) SATRAP_REQUIRES(mutex_);
  bool is_registered(std::size_t block) const;

  const std::int64_t stride_bytes_;
  const int partition_bits_;
  Mutex mutex_;  // for creating blocks
  RegisterBlock register_ SATRAP_GUARDED_BY(mutex_);
  std::atomic<bool> is_registered_{false};
  std::array<MemoryBlock, kMaxBlocks> blocks_ SATRAP_GUARDED_BY(mutex_);
  std::array<std::shared_ptr<void>, kMaxBlocks> registrations_;  // end before their blocks
  std::array<std::atomic<std::byte*>, kMaxBlocks> bases_{};
};

}  // namespace satrap::table
