#include "src/table/row_ages.h"

#include <algorithm>
#include <bit>

#include "satrap/core/hash.h"
#include "satrap/table/sharding.h"

namespace satrap::table {
namespace {

constexpr std::int64_t kSweepsPerTtl = 16;
constexpr std::size_t kAgesAhead = 16;  // rows: their ages are anywhere in memory

/// Bits of the groups that shards and partitions do not use.
int bits_within_partition(std::int64_t num_shards) {
  const int shard_bits =
      static_cast<int>(std::bit_width(static_cast<std::uint64_t>(num_shards - 1)));
  return std::max(0, RowAges::kGroupBits - kPartitionBits - shard_bits);
}

bool divides_groups(std::int64_t num_shards) {
  return std::has_single_bit(static_cast<std::uint64_t>(num_shards)) &&
         num_shards <= std::int64_t{1} << (RowAges::kGroupBits - kPartitionBits);
}

}  // namespace

RowAges::RowAges(const RowLimits& limits, std::int64_t partition, std::int64_t num_shards)
    : limits_(limits),
      num_shards_(num_shards),
      group_bits_(bits_within_partition(num_shards)),
      capacity_([&] {
        const std::int64_t num_groups = (num_shards * kPartitions) << group_bits_;
        return (limits.capacity_rows + num_groups - 1) / num_groups;
      }()),
      groups_(std::size_t{1} << group_bits_) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    groups_[g].number = partition * std::ssize(groups_) + static_cast<std::int64_t>(g);
  }
}

RowAges::Group& RowAges::group_of(Key key) {
  const std::uint64_t below = position_in_shard(key, num_shards_) << kPartitionBits;
  Group& group = groups_[(below >> 1) >> (63 - group_bits_)];
  // A shard does not know its number; its keys tell.
  if (divides_groups(num_shards_)) {
    group.number = static_cast<std::int64_t>(mixed_id_of(key) >> (kIdBits - kGroupBits));
  }
  return group;
}

void RowAges::add(Key key, std::int64_t number, std::int64_t step) {
  for (; num_numbers_ <= number; ++num_numbers_) last_asked_.add(num_numbers_);
  touch(number, step);
  std::vector<std::uint32_t>& rows = group_of(key).rows;
  const std::size_t before = rows.capacity();
  rows.push_back(static_cast<std::uint32_t>(number));
  const std::size_t grown = rows.capacity() - before;
  resident_bytes_ += static_cast<std::int64_t>(grown * sizeof(std::uint32_t));
}

std::span<const RowAges::Row> RowAges::choose(std::int64_t step,
                                              const std::function<Key(std::int64_t)>& key_of) {
  chosen_.clear();
  for (Group& group : groups_) {
    chosen_rows_.clear();
    if (is_swept(group, step)) choose_expired(group, step);
    const std::int64_t left = std::ssize(group.rows) - std::ssize(chosen_rows_);
    if (limits_.capacity_rows > 0 && left > capacity_) choose_oldest(group, step, key_of);
    if (chosen_rows_.empty()) continue;
    std::erase_if(group.rows, [&](std::uint32_t row) { return last_asked(row) == kGone; });
    const auto first = std::ssize(chosen_);
    for (const std::uint32_t row : chosen_rows_) chosen_.push_back({key_of(row), row});
    std::sort(chosen_.begin() + first, chosen_.end(),
              [](const Row& a, const Row& b) { return a.key < b.key; });
  }
  return chosen_;
}

/// Groups are swept in turn, which bounds the work of a step.
bool RowAges::is_swept(const Group& group, std::int64_t step) const {
  if (limits_.ttl_steps == 0) return false;
  const std::int64_t period = std::max<std::int64_t>(1, limits_.ttl_steps / kSweepsPerTtl);
  return (step + group.number) % period == 0;
}

/// Differs from group to group, so that they are not all full again at the same time.
std::int64_t RowAges::low_water(const Group& group) const {
  const RandomStream random{hash64(static_cast<std::uint64_t>(group.number))};
  const double part = 1.0 / 16 + random.uniform_double(0) / 8;
  return capacity_ - static_cast<std::int64_t>(part * static_cast<double>(capacity_));
}

void RowAges::choose_expired(const Group& group, std::int64_t step) {
  const std::int64_t age = std::max(limits_.ttl_steps, limits_.pinned_steps);
  for (const std::uint32_t row : group.rows) {
    if (last_asked(row) + age <= step) note(row);
  }
}

void RowAges::choose_oldest(const Group& group,
                            std::int64_t step,
                            const std::function<Key(std::int64_t)>& key_of) {
  candidates_.clear();
  for (std::size_t i = 0; i < group.rows.size(); ++i) {
    if (i + kAgesAhead < group.rows.size()) prefetch(group.rows[i + kAgesAhead]);
    const std::uint32_t row = group.rows[i], asked = last_asked(row);
    if (asked != kGone && asked + limits_.pinned_steps <= step) candidates_.push_back({asked, row});
  }
  const std::int64_t rows = std::ssize(group.rows) - std::ssize(chosen_rows_);
  const auto num_chosen = std::min(std::ssize(candidates_), rows - low_water(group));
  if (num_chosen == 0) return;
  const auto last = candidates_.begin() + num_chosen - 1;
  std::nth_element(candidates_.begin(), last, candidates_.end(),
                   [](const auto& a, const auto& b) { return a.last_asked < b.last_asked; });
  // Ties with the last row evicted are broken by the lowest id: only their keys are read.
  const std::uint32_t limit = last->last_asked;
  const auto tied = std::partition(candidates_.begin(), candidates_.end(),
                                   [&](const auto& c) { return c.last_asked < limit; });
  const auto ties_end =
      std::partition(tied, candidates_.end(), [&](const auto& c) { return c.last_asked == limit; });
  std::sort(tied, ties_end,
            [&](const auto& a, const auto& b) { return key_of(a.row) < key_of(b.row); });
  for (auto c = candidates_.begin(); c <= last; ++c) note(c->row);
}

}  // namespace satrap::table
