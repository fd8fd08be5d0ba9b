#include "satrap/core/ids.h"

#include <cstddef>

#include "satrap/core/hash.h"

namespace satrap {

std::uint64_t fold_id(std::uint64_t id) { return id <= kIdMask ? id : hash64(id) & kIdMask; }

void make_keys(TableId table, std::span<const std::uint64_t> ids, Key* keys) {
  const std::uint64_t in_table = static_cast<std::uint64_t>(table) << kIdBits;
  std::uint64_t bits = 0;  // of all ids
  for (std::size_t i = 0; i < ids.size(); ++i) {
    bits |= ids[i];
    keys[i] = static_cast<Key>(in_table | mix_id(ids[i]));
  }
  if (bits <= kIdMask) return;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] > kIdMask) keys[i] = make_key(table, ids[i]);
  }
}

}  // namespace satrap
