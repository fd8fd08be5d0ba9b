#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "satrap/core/ids.h"
#include "satrap/table/sharding.h"
#include "src/table/memory_block.h"
#include "src/table/row_arena.h"

namespace satrap::table {

/// Key -> row number for one partition: open addressing with linear probing over entries of 4
/// bytes, 8 bits of tag and 24 of row number. The place comes from the highest bits of the key's
/// position in its shard that the partitions do not share, so ascending keys walk the index in
/// order; the tag comes from the lowest bits of the key. The key in the row's header confirms a
/// matching tag.
///
/// Entries are in segments by the first of those bits (extendible hashing, Fagin et al. 1979): a
/// segment doubles until it has kMaxEntries and then splits in two, so no insert ever moves more
/// than about a hundred thousand entries. Each segment is full at its own load, between 0.55 and
/// 0.85: ids are spread so evenly that otherwise all segments of a table would grow within the same
/// few steps.
///
/// The entry of an erased row stays taken until the next entry is free or another row takes it; a
/// segment with too many of these is rebuilt.
class RowIndex {
 public:
  static constexpr std::int64_t kMaxEntries = std::int64_t{1} << 17;

  /// The number of the partition only decides the loads at which segments are full.
  RowIndex(std::int64_t partition, std::int64_t num_shards);

  /// Row of `key`, or nullptr. `position`, here and below: position_in_shard(key).
  RowPointer find(Key key, std::uint64_t position, const RowArena& arena) const {
    const Segment& segment = segment_of(position);
    for (std::int64_t place = segment.place_of(position);; place = segment.after(place)) {
      const std::uint32_t entry = segment.entries[place];
      if (entry == 0) return nullptr;
      if ((entry ^ tag_of(key)) > kRowMask || entry == kErased) continue;
      const RowPointer row = arena.row((entry & kRowMask) - 1);
      if (header_of(row).key == key) return row;
    }
  }

  /// The two halves of find, for interleaving several keys: the caller prefetches first_entry()
  /// (GCC 12 drops calls of functions that only prefetch); candidate() is the first row whose tag
  /// matches (most probably the right one), or nullptr.
  const void* first_entry(std::uint64_t position) const {
    const Segment& segment = segment_of(position);
    return segment.entries + segment.place_of(position);
  }
  RowPointer candidate(Key key, std::uint64_t position, const RowArena& arena) const {
    const Segment& segment = segment_of(position);
    for (std::int64_t place = segment.place_of(position);; place = segment.after(place)) {
      const std::uint32_t entry = segment.entries[place];
      if (entry == 0) return nullptr;
      if ((entry ^ tag_of(key)) > kRowMask || entry == kErased) continue;
      return arena.row((entry & kRowMask) - 1);
    }
  }

  /// Makes room for `key`. `arena` has the rows of the index. Throws Error(kUnavailable) if memory
  /// is exhausted; the index is then unchanged.
  void reserve(Key key, const RowArena& arena) {
    const std::uint64_t position = position_of(key);
    while (segment_of(position).num_taken >= segment_of(position).max_rows) grow(key, arena);
  }

  /// Adds a key that is missing, after reserve(key).
  void insert(Key key, std::int64_t row_number) {
    const std::uint64_t position = position_of(key);
    segment_of(position).insert(position, tag_of(key) | static_cast<std::uint32_t>(row_number + 1));
  }

  /// Removes an existing key.
  void erase(Key key, std::int64_t row_number) {
    const std::uint64_t position = position_of(key);
    segment_of(position).erase(position, tag_of(key) | static_cast<std::uint32_t>(row_number + 1));
  }

  std::int64_t resident_bytes() const { return resident_bytes_; }

 private:
  static constexpr int kRowBits = 24;
  static constexpr std::uint32_t kRowMask = (std::uint32_t{1} << kRowBits) - 1;
  static constexpr std::uint32_t kErased = kRowMask;  // the number after the last row's
  static constexpr int kFirstBit = kPartitionBits;
  static constexpr int kMaxPrefixBits = 12;  // enough for 2^24 rows; then segments double again

  struct Segment {
    std::uint32_t* entries = nullptr;
    std::int64_t num_entries = 0;  // a power of two
    int left_shift = 0;   // of a position: removes the bits that all keys of the segment share
    int right_shift = 0;  // then: leaves log2(num_entries) bits
    int prefix_bits = 0;  // beyond the partition's
    std::int64_t num_rows = 0;
    std::int64_t num_taken = 0;  // entries: rows and erased ones
    std::int64_t max_rows = 0;
    MemoryBlock block;

    std::int64_t place_of(std::uint64_t position) const {
      return static_cast<std::int64_t>((position << left_shift) >> right_shift);
    }
    std::int64_t after(std::int64_t place) const { return (place + 1) & (num_entries - 1); }
    std::int64_t before(std::int64_t place) const { return (place - 1) & (num_entries - 1); }
    void insert(std::uint64_t position, std::uint32_t entry) {
      std::int64_t place = place_of(position);
      while (entries[place] != 0 && entries[place] != kErased) place = after(place);
      num_taken += entries[place] == 0;
      entries[place] = entry;
      ++num_rows;
    }
    void erase(std::uint64_t position, std::uint32_t entry) {
      std::int64_t place = place_of(position);
      while (entries[place] != entry) place = after(place);
      entries[place] = kErased;
      --num_rows;
      if (entries[after(place)] != 0) return;  // other probes may have passed it
      for (; entries[place] == kErased; place = before(place), --num_taken) entries[place] = 0;
    }
  };

  static std::uint32_t tag_of(Key key) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(key)) << kRowBits;
  }
  /// The first `bits` bits of a position that belong to this index.
  static std::size_t prefix_of(std::uint64_t position, int bits) {
    return ((position << kFirstBit) >> 1) >> (63 - bits);
  }
  std::uint64_t position_of(Key key) const { return position_in_shard(key, num_shards_); }
  Segment& segment_of(std::uint64_t position) const {
    return *directory_[prefix_of(position, directory_bits_)];
  }

  std::unique_ptr<Segment> make_segment(std::int64_t num_entries,
                                        int prefix_bits,
                                        std::size_t prefix) const;
  void grow(Key key, const RowArena& arena);
  void point_directory(std::size_t prefix, int prefix_bits, Segment* segment);
  template <class Visit>
  static void for_each_entry(const Segment& segment, const RowArena& arena, Visit&& visit);

  const std::int64_t partition_;
  const std::int64_t num_shards_;
  int directory_bits_ = 0;
  std::vector<Segment*> directory_;  // [2^directory_bits_], neighbours may be the same segment
  std::vector<std::unique_ptr<Segment>> segments_;
  std::int64_t resident_bytes_ = 0;
};

}  // namespace satrap::table
