#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "satrap/core/ids.h"

namespace satrap::ps {

/// The rows of a shard, and their division among workers; the same for all requests.
struct ShardLayout {
  std::int64_t shard = 0;
  std::int64_t num_shards = 1;
  std::int64_t num_workers = 1;
  std::vector<std::int64_t> dims = {};  // [num_tables]

  std::int64_t num_tables() const { return static_cast<std::int64_t>(dims.size()); }
};

/// The keys of a request, ascending, and their division by tables and workers. Worker w has the
/// partitions [w * 64 / W, (w + 1) * 64 / W) of every table, so its keys of a table are contiguous.
/// Keeps its memory from request to request.
class DividedKeys {
 public:
  struct Range {
    std::int64_t begin, end;
  };

  /// Throws Error(kInvalidData), naming the problem, unless the keys ascend, their tables exist and
  /// they belong to this shard.
  void assign(const ShardLayout& layout, std::span<const Key> keys);

  std::span<const Key> keys() const { return keys_; }

  /// Keys of `table` that belong to `worker`.
  Range part(std::int64_t table, std::int64_t worker) const {
    const auto at = static_cast<std::size_t>(table * (num_workers_ + 1) + worker);
    return {part_begin_[at], part_begin_[at + 1]};
  }

  /// Place of the values of key number `key`, of `table`, in the wire layout, in floats.
  std::int64_t value_begin(std::int64_t table, std::int64_t key, std::int64_t dim) const {
    const auto t = static_cast<std::size_t>(table);
    return table_values_[t] + (key - table_begin_[t]) * dim;
  }
  std::int64_t num_values() const { return table_values_.back(); }

 private:
  std::int64_t num_workers_ = 0;
  std::vector<Key> keys_;
  std::vector<std::int64_t> table_begin_;   // [num_tables + 1]: number of its first key
  std::vector<std::int64_t> table_values_;  // [num_tables + 1]: floats before it
  std::vector<std::int64_t> part_begin_;    // [num_tables, num_workers + 1]
};

}  // namespace satrap::ps
