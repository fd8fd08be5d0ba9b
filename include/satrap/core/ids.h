#pragma once

#include <cstdint>
#include <span>

namespace satrap {

/// Number of a table within a job, in the order of their names. At most kMaxTables.
enum class TableId : std::uint16_t {};

/// Identity of a row within a job: table number in the top kTableBits bits, the *mixed* id in the
/// kIdBits bits below. Mixing is a bijection, so the id can be recovered, and the top id bits are
/// uniformly distributed: they choose the partition of a table and the place in a hash index
/// without any further hashing, and sorting by key groups by table, then by partition.
enum class Key : std::uint64_t {};

inline constexpr int kTableBits = 10;
inline constexpr int kIdBits = 64 - kTableBits;
inline constexpr std::int64_t kMaxTables = std::int64_t{1} << kTableBits;
inline constexpr std::uint64_t kIdMask = (std::uint64_t{1} << kIdBits) - 1;

/// An id as it is stored in a key: itself if it fits kIdBits (1.8e16), else its 54-bit hash.
std::uint64_t fold_id(std::uint64_t id);

/// The bijection on [0, 2^kIdBits) that Key uses, and its inverse.
constexpr std::uint64_t mix_id(std::uint64_t folded);
constexpr std::uint64_t unmix_id(std::uint64_t mixed);

/// Key of `id` in `table`.
inline Key make_key(TableId table, std::uint64_t id);

/// Keys of many ids of a table, to as many places: several at a time, where the processor can.
void make_keys(TableId table, std::span<const std::uint64_t> ids, Key* keys);

/// Parts of a key: its table, its mixed id, and the (folded) id of the data.
constexpr TableId table_of(Key key);
constexpr std::uint64_t mixed_id_of(Key key);
constexpr std::uint64_t id_of(Key key);

// ------------------------------------------------------------------------------ implementation

namespace detail {
// Odd constants and their inverses modulo 2^54; x ^= x >> 27 is its own inverse on 54 bits.
inline constexpr std::uint64_t kMixA = 0x9E3779B97F4A7C15ULL & kIdMask;
inline constexpr std::uint64_t kMixB = 0xBF58476D1CE4E5B9ULL & kIdMask;

constexpr std::uint64_t inverse_mod_2_64(std::uint64_t odd) {
  std::uint64_t x = odd;  // Newton: each round doubles the number of correct low bits
  for (int i = 0; i < 6; ++i) x *= 2 - odd * x;
  return x;
}
constexpr std::uint64_t fold_high_bits(std::uint64_t x) { return x ^ (x >> (kIdBits / 2)); }
}  // namespace detail

constexpr std::uint64_t mix_id(std::uint64_t folded) {
  std::uint64_t x = detail::fold_high_bits((folded * detail::kMixA) & kIdMask);
  x = detail::fold_high_bits((x * detail::kMixB) & kIdMask);
  return x;
}

constexpr std::uint64_t unmix_id(std::uint64_t mixed) {
  std::uint64_t x = detail::fold_high_bits(mixed);
  x = (x * detail::inverse_mod_2_64(detail::kMixB)) & kIdMask;
  x = detail::fold_high_bits(x);
  return (x * detail::inverse_mod_2_64(detail::kMixA)) & kIdMask;
}

inline Key make_key(TableId table, std::uint64_t id) {
  return static_cast<Key>((static_cast<std::uint64_t>(table) << kIdBits) | mix_id(fold_id(id)));
}

constexpr TableId table_of(Key key) {
  return static_cast<TableId>(static_cast<std::uint64_t>(key) >> kIdBits);
}
constexpr std::uint64_t mixed_id_of(Key key) { return static_cast<std::uint64_t>(key) & kIdMask; }
constexpr std::uint64_t id_of(Key key) { return unmix_id(mixed_id_of(key)); }

}  // namespace satrap
