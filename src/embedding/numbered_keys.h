#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "satrap/kernels/sort_unique.h"

namespace satrap::embedding {

/// Keys, each with the number of its row, to be sorted. Keeps its memory from use to use; one
/// thread at a time.
class NumberedKeys {
 public:
  void clear() { items_.clear(); }

  /// `number` is below 2^32.
  void add(Key key, std::int64_t number) {
    items_.push_back({key, static_cast<std::uint32_t>(number), 0});
  }

  /// By key, equal ones in the order in which they were added.
  void sort() {
    scratch_.resize(items_.size());
    sort_by_key(items_, scratch_);
  }

  std::int64_t size() const { return std::ssize(items_); }
  Key key(std::size_t place) const { return items_[place].key; }
  std::size_t number(std::size_t place) const { return items_[place].position; }

  /// The first place from `from` on, of sorted keys, whose key is not below `key`; size() if there
  /// is none. Takes longer with the logarithm of the distance.
  std::size_t find(Key key, std::size_t from) const {
    std::size_t low = from, high = from;
    for (std::size_t step = 1; high < items_.size() && items_[high].key < key; step *= 2) {
      low = high + 1;
      high += step;
    }
    const auto first = items_.begin() + static_cast<std::ptrdiff_t>(low);
    const auto last = items_.begin() + static_cast<std::ptrdiff_t>(std::min(high, items_.size()));
    const auto at = std::ranges::lower_bound(first, last, key, {}, &KeyOccurrence::key);
    return static_cast<std::size_t>(at - items_.begin());
  }

 private:
  std::vector<KeyOccurrence> items_, scratch_;
};

}  // namespace satrap::embedding
