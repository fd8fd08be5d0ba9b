#include "src/table/row_index.h"

#include <bit>
#include <utility>

#include "satrap/core/hash.h"

namespace satrap::table {
namespace {

constexpr std::int64_t kFirstEntries = 16;
constexpr double kLowestLoad = 0.55, kHighestLoad = 0.85;

std::int64_t bytes_of(std::int64_t num_entries) {
  return num_entries * static_cast<std::int64_t>(sizeof(std::uint32_t));
}

}  // namespace

RowIndex::RowIndex(std::int64_t partition, std::int64_t num_shards)
    : partition_(partition), num_shards_(num_shards) {
  segments_.push_back(make_segment(kFirstEntries, 0, 0));
  directory_.push_back(segments_.back().get());
  resident_bytes_ = bytes_of(kFirstEntries);
}

std::unique_ptr<RowIndex::Segment> RowIndex::make_segment(std::int64_t num_entries,
                                                          int prefix_bits,
                                                          std::size_t prefix) const {
  auto segment = std::make_unique<Segment>();
  segment->block = MemoryBlock(bytes_of(num_entries));
  segment->entries = reinterpret_cast<std::uint32_t*>(segment->block.data());
  segment->num_entries = num_entries;
  segment->left_shift = kFirstBit + prefix_bits;
  segment->right_shift = 64 - std::countr_zero(static_cast<std::uint64_t>(num_entries));
  segment->prefix_bits = prefix_bits;
  const RandomStream random{hash64(static_cast<std::uint64_t>(partition_), prefix,
                                   static_cast<std::uint64_t>(prefix_bits))};
  const double load = kLowestLoad + (kHighestLoad - kLowestLoad) * random.uniform_double(0);
  segment->max_rows = static_cast<std::int64_t>(static_cast<double>(num_entries) * load);
  return segment;
}

/// Calls visit(key, entry) for the taken entries in order, and prefetches the rows' headers, which
/// are in no order.
template <class Visit>
void RowIndex::for_each_entry(const Segment& segment, const RowArena& arena, Visit&& visit) {
  constexpr std::int64_t kAhead = 32;
  const auto row_of = [&](std::int64_t place) {
    return arena.row((segment.entries[place] & kRowMask) - 1);
  };
  const auto has_row = [&](std::int64_t place) {
    return segment.entries[place] != 0 && segment.entries[place] != kErased;
  };
  for (std::int64_t place = -kAhead; place < segment.num_entries; ++place) {
    const std::int64_t ahead = place + kAhead;
    if (ahead < segment.num_entries && has_row(ahead)) __builtin_prefetch(row_of(ahead));
    if (place >= 0 && has_row(place)) {
      visit(header_of(row_of(place)).key, segment.entries[place]);
    }
  }
}

void RowIndex::grow(Key key, const RowArena& arena) {
  Segment& full = segment_of(position_of(key));
  const std::size_t prefix = prefix_of(position_of(key), full.prefix_bits);
  segments_.reserve(segments_.size() + 1);
  const auto owner = std::find_if(segments_.begin(), segments_.end(),
                                  [&](const auto& segment) { return segment.get() == &full; });
  const bool has_erased = full.num_rows < full.max_rows - full.max_rows / 4;
  if (has_erased || full.num_entries < kMaxEntries || full.prefix_bits == kMaxPrefixBits) {
    const std::int64_t num_entries = has_erased ? full.num_entries : 2 * full.num_entries;
    std::unique_ptr<Segment> other = make_segment(num_entries, full.prefix_bits, prefix);
    for_each_entry(full, arena,
                   [&](Key k, std::uint32_t entry) { other->insert(position_of(k), entry); });
    resident_bytes_ += bytes_of(num_entries - full.num_entries);
    point_directory(prefix, full.prefix_bits, other.get());
    *owner = std::move(other);
    return;
  }
  const int bits = full.prefix_bits + 1;
  std::unique_ptr<Segment> low = make_segment(full.num_entries, bits, 2 * prefix);
  std::unique_ptr<Segment> high = make_segment(full.num_entries, bits, 2 * prefix + 1);
  if (bits > directory_bits_) {
    std::vector<Segment*> doubled;
    doubled.reserve(2 * directory_.size());
    for (Segment* segment : directory_) doubled.insert(doubled.end(), 2, segment);
    directory_ = std::move(doubled);
    directory_bits_ = bits;
  }
  for_each_entry(full, arena, [&](Key k, std::uint32_t entry) {
    const std::uint64_t position = position_of(k);
    (prefix_of(position, bits) == 2 * prefix ? *low : *high).insert(position, entry);
  });
  resident_bytes_ += bytes_of(full.num_entries);
  point_directory(2 * prefix, bits, low.get());
  point_directory(2 * prefix + 1, bits, high.get());
  *owner = std::move(low);
  segments_.push_back(std::move(high));
}

void RowIndex::point_directory(std::size_t prefix, int prefix_bits, Segment* segment) {
  const int rest = directory_bits_ - prefix_bits;
  std::fill_n(directory_.begin() + static_cast<std::ptrdiff_t>(prefix << rest),
              std::size_t{1} << rest, segment);
}

}  // namespace satrap::table
