#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "satrap/core/ids.h"
#include "satrap/kernels/dims.h"
#include "satrap/table/sharding.h"
#include "satrap/table/table.h"

namespace satrap::table {

/// Rows that are found, and then copied while they are in a cache.
inline constexpr std::size_t kRowsPerBlock = 512;

/// Finds or creates the rows of the `keys` that `step` uses, ascending, and copies row i, header
/// included, to to(i), [row_bytes]. One thread at a time per partition.
template <class To>
void fetch_rows(Table& table, std::int64_t step, std::span<const Key> keys, To&& to) {
  constexpr std::size_t kAhead = 8;  // rows between prefetching one and reading it
  const auto bytes = static_cast<std::size_t>(table.row_bytes());
  std::array<RowPointer, kRowsPerBlock> rows;
  for (std::size_t begin = 0; begin < keys.size(); begin += kRowsPerBlock) {
    const std::size_t size = std::min(kRowsPerBlock, keys.size() - begin);
    table.find_or_insert(keys.subspan(begin, size), std::span(rows).first(size), step);
    for (std::size_t i = 0; i < size; ++i) {
      if (i + kAhead < size) prefetch_read(rows[i + kAhead], table.row_bytes());
      std::memcpy(to(begin + i), rows[i], bytes);
    }
  }
}

/// Finds or creates the rows of `keys`, ascending, and replaces row i by from(i), [row_bytes],
/// whose header has the same key. Returns the highest of their last steps, 0 if there are none. One
/// thread at a time per partition.
template <class From>
std::int64_t put_rows(Table& table,
                      std::int64_t num_shards,
                      std::int64_t step,
                      std::span<const Key> keys,
                      From&& from) {
  std::int64_t highest = 0;
  std::array<RowPointer, kRowsPerBlock> all_rows;
  std::array<const std::byte*, kRowsPerBlock> sources;
  for (std::size_t begin = 0; begin < keys.size();) {
    const auto ahead = keys.first(std::min(keys.size(), begin + kRowsPerBlock));
    const std::size_t size = end_of_partition(ahead, begin, num_shards) - begin;
    const auto rows = std::span(all_rows).first(size);
    table.find_or_insert(keys.subspan(begin, size), rows, step);
    for (std::size_t i = 0; i < size; ++i) {
      sources[i] = from(begin + i);
      RowHeader header;
      std::memcpy(&header, sources[i], sizeof(header));
      highest = std::max<std::int64_t>(highest, header.last_step);
    }
    table.replace_partition(partition_of(keys[begin], num_shards), rows,
                            std::span(sources).first(size));
    begin += size;
  }
  return highest;
}

}  // namespace satrap::table
