#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "satrap/core/hash.h"
#include "satrap/data/synthetic_config.h"
#include "src/data/generate/zipf_sampler.h"

namespace satrap::data {

/// Number of rows generated together: few enough that all intermediate values stay in the cache,
/// enough for vector loops.
inline constexpr std::size_t kTileRows = 256;

/// Drawn before the columns: the random stream of each row and its moment in the run.
struct SyntheticRows {
  std::vector<RandomStream> random;   // [num_rows]
  std::vector<std::uint64_t> moment;  // [num_rows] share of the run that is over, times 2^32
  std::vector<std::uint64_t> number;  // [num_rows] within the log

  std::size_t size() const { return random.size(); }
  void clear() {
    random.clear();
    moment.clear();
    number.clear();
  }
  void add(RandomStream row_random, std::uint64_t row_moment, std::uint64_t row_number) {
    random.push_back(row_random);
    moment.push_back(row_moment);
    number.push_back(row_number);
  }
};

/// One categorical column of the synthetic log: the ids of a row, and their effect on the label.
///
/// An id starts as its *place*: rank - 1 of a first-generation id, cardinality + rank - 1 of its
/// replacement under drift, and 2 * cardinality + n of the n-th id that occurs only once. Weights
/// and vectors are hashes of the place; a bijection maps the place to the id in the data.
class SyntheticFeature {
 public:
  static constexpr std::size_t kVectorDim = 4;

  /// The ids of a tile, flat, row after row.
  struct Ids {
    std::vector<std::int64_t> sizes;    // [num_rows] of the bags
    std::vector<std::uint32_t> row_of;  // [num_ids]
    std::vector<std::uint64_t> bits;    // [num_ids] from which the rank was drawn
    std::vector<std::uint64_t> places;  // [num_ids]
    std::vector<double> scratch;
  };

  SyntheticFeature(const SyntheticConfig& config, std::int64_t feature, std::uint64_t seed);

  /// Fills `ids` for the rows.
  void draw(const SyntheticRows& rows, Ids& ids) const;

  /// Appends the ids as they appear in the data.
  void append_ids(const Ids& ids, std::vector<std::uint64_t>& out) const;

  /// Adds the weight of each id to sums[its row].
  void add_weights(const Ids& ids, std::span<double> sums) const;

  /// Adds the vector of each id to sums[its row]; sums: [num_rows, kVectorDim].
  void add_vectors(const Ids& ids, std::span<float> sums) const;

  bool wide() const { return wide_; }

 private:
  void draw_sizes(const SyntheticRows& rows, Ids& ids) const;
  void replace_drifted(const SyntheticRows& rows, Ids& ids) const;
  void insert_new(const SyntheticRows& rows, Ids& ids) const;

  std::uint64_t cardinality_;
  ZipfSampler ranks_;
  std::uint64_t min_size_, max_size_;
  std::uint64_t empty_below_, drift_below_, new_below_;  // thresholds for 32 random bits
  bool wide_;
  std::uint64_t draws_;  // first draw of this feature in a row
  std::uint64_t id_seed_, weight_seed_, vector_seed_, drift_seed_, new_seed_;
  double importance_;
};

}  // namespace satrap::data
