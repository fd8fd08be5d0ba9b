#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "satrap/core/ids.h"
#include "satrap/table/row_limits.h"
#include "src/table/row_arena.h"

namespace satrap::table {

/// The step that last used each row of a partition, and the choice of rows to evict: RowLimits for
/// one partition. Rows are identified by their number. One thread at a time.
class RowAges {
 public:
  static constexpr int kGroupBits = 12;  // of the mixed id

  RowAges(const RowLimits& limits, std::int64_t partition, std::int64_t num_shards);

  /// Adds a row that is new, or whose number choose() has returned.
  void add(Key key, std::int64_t number, std::int64_t step);

  std::int64_t step_of(std::int64_t number) { return last_asked(number); }

  /// Prefetches a number that will soon be passed to add().
  void prefetch(std::int64_t number) const { __builtin_prefetch(last_asked_.row(number), 1); }

  /// `step` uses the row.
  void touch(std::int64_t number, std::int64_t step) { last_asked(number) = to_stored(step); }

  /// Chooses the rows to evict before `step` begins, by ascending key, and forgets them. Call it
  /// for every step, in ascending order. The result is valid until the next call.
  struct Row {
    Key key;
    std::int64_t number;
  };
  std::span<const Row> choose(std::int64_t step, const std::function<Key(std::int64_t)>& key_of);

  std::int64_t resident_bytes() const {
    return resident_bytes_ + num_numbers_ * static_cast<std::int64_t>(sizeof(std::uint32_t));
  }

 private:
  struct Group {
    std::int64_t number = 0;  // of all groups of the table
    std::vector<std::uint32_t> rows;
  };
  struct Candidate {
    std::uint32_t last_asked;
    std::uint32_t row;
  };
  static std::uint32_t to_stored(std::int64_t step) { return static_cast<std::uint32_t>(step); }
  std::uint32_t& last_asked(std::int64_t number) {
    return *reinterpret_cast<std::uint32_t*>(last_asked_.row(number));
  }
  Group& group_of(Key key);
  bool is_swept(const Group& group, std::int64_t step) const;
  std::int64_t low_water(const Group& group) const;
  void choose_expired(const Group& group, std::int64_t step);
  void choose_oldest(const Group& group,
                     std::int64_t step,
                     const std::function<Key(std::int64_t)>& key_of);
  void note(std::uint32_t row) {
    chosen_rows_.push_back(row);
    last_asked(row) = kGone;
  }

  static constexpr std::uint32_t kGone = 0;  // steps count from 1

  const RowLimits limits_;
  const std::int64_t num_shards_;
  const int group_bits_;         // of a key's position, below the partition's
  const std::int64_t capacity_;  // of a group
  RowArena last_asked_{sizeof(std::uint32_t)};
  std::int64_t num_numbers_ = 0;
  std::vector<Group> groups_;
  std::int64_t resident_bytes_ = 0;  // of lists

  // Scratch of choose(), kept to reuse its memory.
  std::vector<Candidate> candidates_;
  std::vector<std::uint32_t> chosen_rows_;
  std::vector<Row> chosen_;
};

}  // namespace satrap::table
