#pragma once

#include <cstdint>

#include "satrap/core/ids.h"

namespace satrap::table {

/// Rows are divided among shards by ranges of the mixed id, which spreads ids evenly: shard s of N
/// has the mixed ids of [s/N, (s+1)/N) of their range. So of keys in ascending order, those of one
/// table on one shard stand together.
inline std::int64_t shard_of(Key key, std::int64_t num_shards) {
  const auto scaled =
      static_cast<unsigned __int128>(static_cast<std::uint64_t>(key) << (64 - kIdBits)) *
      static_cast<std::uint64_t>(num_shards);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(scaled >> 64));
}

/// Where a key stands within its shard's part of the range, in 64 bits: ascends with the key, and
/// spreads over all bits for any number of shards. What tables divide their rows by.
inline std::uint64_t position_in_shard(Key key, std::int64_t num_shards) {
  return (static_cast<std::uint64_t>(key) << (64 - kIdBits)) *
         static_cast<std::uint64_t>(num_shards);
}

}  // namespace satrap::table
