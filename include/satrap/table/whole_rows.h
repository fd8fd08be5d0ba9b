#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "satrap/core/ids.h"
#include "satrap/kernels/dims.h"
#include "satrap/table/sharding.h"
#include "satrap/table/table.h"

namespace satrap::table {

/// Copies whole rows, headers included, out of a table and into it. Keeps its buffers; one thread.
class WholeRows {
 public:
  /// Finds or creates the rows of the `keys` that `step` uses, ascending, and copies row i to
  /// to(i), [row_bytes].
  template <class To>
  void fetch(Table& table, std::int64_t step, std::span<const Key> keys, To&& to) {
    const auto bytes = static_cast<std::size_t>(table.row_bytes());
    rows_.resize(kRowsPerBlock);
    for (std::size_t begin = 0; begin < keys.size(); begin += kRowsPerBlock) {
      const std::size_t size = std::min(kRowsPerBlock, keys.size() - begin);
      table.find_or_insert(keys.subspan(begin, size), std::span(rows_).first(size), step);
      for (std::size_t i = 0; i < size; ++i) {
        if (i + kAhead < size) prefetch_read(rows_[i + kAhead], table.row_bytes());
        std::memcpy(to(begin + i), rows_[i], bytes);
      }
    }
  }

  /// Finds or creates the rows of `keys`, ascending, and replaces row i by from(i), [row_bytes],
  /// whose header has the same key. Returns the highest of their last steps, 0 if there are none.
  template <class From>
  std::int64_t put(Table& table,
                   std::int64_t num_shards,
                   std::int64_t step,
                   std::span<const Key> keys,
                   From&& from) {
    std::int64_t highest = 0;
    rows_.resize(kRowsPerBlock);
    from_.resize(kRowsPerBlock);
    for (std::size_t begin = 0; begin < keys.size();) {
      const auto ahead = keys.first(std::min(keys.size(), begin + kRowsPerBlock));
      const std::size_t size = end_of_partition(ahead, begin, num_shards) - begin;
      const auto rows = std::span(rows_).first(size);
      table.find_or_insert(keys.subspan(begin, size), rows, step);
      for (std::size_t i = 0; i < size; ++i) {
        from_[i] = from(begin + i);
        RowHeader header;
        std::memcpy(&header, from_[i], sizeof(header));
        highest = std::max<std::int64_t>(highest, header.last_step);
      }
      table.replace_partition(partition_of(keys[begin], num_shards), rows,
                              std::span(from_).first(size));
      begin += size;
    }
    return highest;
  }

 private:
  static constexpr std::size_t kRowsPerBlock = 512;  // found, then copied while they are in a cache
  static constexpr std::size_t kAhead = 8;           // rows between prefetching one and reading it

  std::vector<RowPointer> rows_;
  std::vector<const std::byte*> from_;
};

}  // namespace satrap::table
