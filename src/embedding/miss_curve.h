#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "satrap/core/ids.h"
#include "satrap/embedding/cached_rows.h"

namespace satrap::embedding {

/// Estimates, from a sample of the keys, what share of the rows that batches need a cache of any
/// size would miss if it evicted the row needed longest ago: SHARDS (Waldspurger et al., "Efficient
/// MRC Construction with SHARDS", FAST 2015). A key is in the sample if its hash is small, so all
/// its uses are. Between two uses of a row a cache must hold all rows used since: that many bytes,
/// times the inverse of the sample's share. One thread.
class MissCurve {
 public:
  /// The sample begins with one of 2^first_shift keys and is thinned by half whenever it has more
  /// than max_keys of them.
  explicit MissCurve(std::size_t max_keys = std::size_t{1} << 12, int first_shift = 3)
      : max_keys_(max_keys), shift_(first_shift) {}

  /// The keys that batch `number` needs, ascending from 1; repeated ones count once. Each row takes
  /// row_bytes. A batch may be added in several parts.
  void add(std::uint32_t number, std::span<const Key> keys, std::int64_t row_bytes);

  using Point = CacheCounts::MissRate;
  /// Sizes that double, up to the first that misses first uses only. Empty without a sample.
  std::vector<Point> points() const;

  /// The least of these sizes that misses at most half as often, beyond first uses, as a cache of
  /// this size; 0: none does.
  std::int64_t halving_bytes(std::int64_t cache_bytes) const;

 private:
  struct Use {
    std::uint32_t batch;
    std::uint32_t place;  // in the order of last uses
    std::int64_t row_bytes;
  };
  void thin();
  void compact();
  std::int64_t bytes_before(std::uint32_t place) const;
  void add_bytes(std::uint32_t place, std::int64_t bytes);

  static constexpr int kMaxDoublings = 48;

  const std::size_t max_keys_;
  int shift_;                              // one of 2^shift_ keys
  std::vector<Key> sampled_;               // of a batch
  std::unordered_map<Key, Use> last_use_;  // of the keys in the sample
  std::uint32_t next_place_ = 0;
  std::vector<std::int64_t> bytes_;  // a Fenwick tree: bytes of the rows last used at each place
  double num_uses_ = 0.0, num_first_uses_ = 0.0;  // scaled to all keys
  std::vector<double> reuses_ =
      std::vector<double>(kMaxDoublings);  // by log2 of the bytes between, scaled
};

}  // namespace satrap::embedding
