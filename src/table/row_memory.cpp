#include "src/table/row_memory.h"

#include <algorithm>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::table {

RowMemory::RowMemory(std::int64_t stride_bytes, std::int64_t num_partitions)
    : stride_bytes_(stride_bytes),
      partition_bits_(std::countr_zero(static_cast<std::uint64_t>(num_partitions))) {
  SATRAP_CHECK(std::has_single_bit(static_cast<std::uint64_t>(num_partitions)), num_partitions,
               " partitions");
}

void RowMemory::make_block(std::size_t block) {
  const MutexLock lock(mutex_);
  if (bases_[block].load(std::memory_order_relaxed) != nullptr) return;  // by another partition
  blocks_[block] = MemoryBlock(bytes_of(block), MemoryBlock::kPageBytes);
  register_block(block);
  bases_[block].store(blocks_[block].data(), std::memory_order_release);
}

void RowMemory::register_blocks(RegisterBlock function) {
  const MutexLock lock(mutex_);
  register_ = std::move(function);
  is_registered_ = true;
  for (std::size_t block = 0; block < kMaxBlocks; ++block) {
    if (blocks_[block].data() != nullptr) register_block(block);
  }
}

/// Registers a new block, before it has a row.
void RowMemory::register_block(std::size_t block) {
  if (!is_registered()) return;
  const std::int64_t pages =
      (bytes_of(block) + MemoryBlock::kPageBytes - 1) / MemoryBlock::kPageBytes;
  registrations_[block] = register_(blocks_[block].data(), pages * MemoryBlock::kPageBytes);
  if (registrations_[block] == nullptr) is_registered_ = false;
}

std::int64_t RowMemory::number_of(const std::byte* address, std::int64_t num_rows) const {
  if (num_rows == 0) return -1;
  for (std::size_t block = place_of(num_rows - 1).block + 1;
       block-- > 0;) {  // most are in the last
    const auto base =
        reinterpret_cast<std::uintptr_t>(bases_[block].load(std::memory_order_acquire));
    const auto offset = reinterpret_cast<std::uintptr_t>(address) - base;
    if (offset >= static_cast<std::uintptr_t>(bytes_of(block))) continue;
    const int bits = stretch_bits(block);
    const std::int64_t index = static_cast<std::int64_t>(offset) / stride_bytes_;
    const std::int64_t stretch = index >> bits >> partition_bits_;
    return first_row(block) + (stretch << bits | (index & ((std::int64_t{1} << bits) - 1)));
  }
  return -1;
}

std::int64_t RowMemory::resident_bytes(std::int64_t num_rows) const {
  std::int64_t bytes = 0;
  for (std::size_t block = 0; first_row(block) < num_rows; ++block) {
    if (is_registered(block)) continue;
    const std::int64_t whole = bytes_of_partition(block);
    const std::int64_t rows = std::min(num_rows - first_row(block), kFirstRows << block);
    const std::int64_t granule = std::max(
        MemoryBlock::kPageBytes, MemoryBlock::page_bytes(bytes_of(block)) >> partition_bits_);
    const std::int64_t touched = (rows * stride_bytes_ + granule - 1) / granule * granule;
    bytes += bytes_of(block) < MemoryBlock::kMappedBytes ? whole : std::min(whole, touched);
  }
  return bytes;
}

std::int64_t RowMemory::registered_bytes() const {
  std::int64_t bytes = 0;
  for (std::size_t block = 0; block < kMaxBlocks; ++block) {
    if (is_registered(block)) bytes += bytes_of(block);
  }
  return bytes;
}

bool RowMemory::is_registered(std::size_t block) const {
  const bool exists = bases_[block].load(std::memory_order_acquire) != nullptr;
  return exists && registrations_[block] != nullptr;
}

}  // namespace satrap::table
