#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "src/table/row_memory.h"

namespace satrap::table {

/// The rows of one partition by number, in memory that it may share with the table's other
/// partitions. Any thread may address existing rows while one thread adds rows.
class RowArena {
 public:
  static constexpr std::int64_t kMaxRows = RowMemory::kMaxRows;

  explicit RowArena(std::int64_t stride_bytes)
      : RowArena(std::make_shared<RowMemory>(stride_bytes, 1), 0) {}
  RowArena(std::shared_ptr<RowMemory> memory, std::int64_t partition)
      : memory_(std::move(memory)), partition_(partition) {}

  /// As in RowMemory.
  RowPointer row(std::int64_t number) const { return memory_->row(partition_, number); }
  RowPointer add(std::int64_t number) { return memory_->add(partition_, number); }
  std::int64_t number_of(const std::byte* address, std::int64_t num_rows) const {
    return memory_->number_of(address, num_rows);
  }
  std::int64_t resident_bytes(std::int64_t num_rows) const {
    return memory_->resident_bytes(num_rows);
  }

 private:
  const std::shared_ptr<RowMemory> memory_;
  const std::int64_t partition_;
};

}  // namespace satrap::table
