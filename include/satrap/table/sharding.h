#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "satrap/core/ids.h"

namespace satrap::table {

/// Rows are divided among shards by ranges of the mixed id, which spreads ids evenly: shard s of N
/// has the mixed ids of [s/N, (s+1)/N) of their range. So in ascending order the keys of one table
/// on one shard are contiguous.
inline std::int64_t shard_of(Key key, std::int64_t num_shards) {
  const auto scaled =
      static_cast<unsigned __int128>(static_cast<std::uint64_t>(key) << (64 - kIdBits)) *
      static_cast<std::uint64_t>(num_shards);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(scaled >> 64));
}

/// Position of a key within its shard's part of the range, in 64 bits: ascends with the key, and
/// spreads over all bits for any number of shards.
inline std::uint64_t position_in_shard(Key key, std::int64_t num_shards) {
  return (static_cast<std::uint64_t>(key) << (64 - kIdBits)) *
         static_cast<std::uint64_t>(num_shards);
}

/// Within a shard the top bits of their position divide the rows of a table into partitions, the
/// units of exclusive access to rows.
inline constexpr int kPartitionBits = 6;
inline constexpr std::int64_t kPartitions = std::int64_t{1} << kPartitionBits;

inline std::int64_t partition_at(std::uint64_t position) {
  return static_cast<std::int64_t>(position >> (64 - kPartitionBits));
}

/// Ascends with the key, among those of one table and shard.
inline std::int64_t partition_of(Key key, std::int64_t num_shards = 1) {
  return partition_at(position_in_shard(key, num_shards));
}

/// The keys [begin, end) of an ascending list of one table's keys that belong to the partition of
/// key `begin`.
inline std::size_t end_of_partition(std::span<const Key> keys,
                                    std::size_t begin,
                                    std::int64_t num_shards = 1) {
  const std::int64_t partition = partition_of(keys[begin], num_shards);
  std::size_t end = begin + 1;
  while (end < keys.size() && partition_of(keys[end], num_shards) == partition) ++end;
  return end;
}

}  // namespace satrap::table
