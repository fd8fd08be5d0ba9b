#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "satrap/core/hash.h"
#include "satrap/core/ids.h"

namespace satrap::ps {

/// What a worker has lately answered to a rank that keeps copies of rows: of which version the copy
/// will be once the answer has arrived. Without it a row that many steps use would be sent in each
/// of several pulls in flight. Each key has one place, which it may lose to another key: that costs
/// a row that is sent again, and nothing else.
class SentRows {
 public:
  /// Makes room for the keys of the pulls in flight. Growing forgets all.
  void make_room(std::size_t num_keys) {
    const std::size_t wanted = std::bit_ceil(2 * num_keys);
    if (wanted > entries_.size()) entries_.assign(wanted, Entry{});
  }

  /// -1: not known.
  std::int64_t version(Key key) const {
    const Entry& entry = entries_[place(key)];
    return entry.key == key ? entry.version : -1;
  }
  void note(Key key, std::int64_t version) { entries_[place(key)] = {key, version}; }

 private:
  struct Entry {
    Key key{};
    std::int64_t version = -1;
  };
  std::size_t place(Key key) const {
    return static_cast<std::size_t>(hash64(static_cast<std::uint64_t>(key))) &
           (entries_.size() - 1);
  }

  std::vector<Entry> entries_ = std::vector<Entry>(1);  // a power of two
};

}  // namespace satrap::ps
