#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "satrap/data/row_block.h"
#include "satrap/data/synthetic_best.h"
#include "satrap/data/synthetic_config.h"

namespace satrap::data {

/// Generates rows of a synthetic click log. Each row is a pure function of (config, row number):
/// any range can be generated alone, in any order, by any thread, with the same bits on every
/// machine (only IEEE add, multiply, divide and integers are used, no libm).
///
/// Ids: the rank of an id is Zipf distributed over exactly 1 .. cardinality (bounded, no folding of
/// the tail), then mapped by a bijection, so that the id does not reveal the rank: onto 32
/// bits for features of up to 2^30 ids, onto 54 bits for larger ones. No two ids of a feature
/// collide.
///
/// Labels: Bernoulli(p) with
///   logit p = b + Σ w_f(id) + Σ over some pairs of features <u_f(id), u_g(id')> + Σ g_c(number c),
/// with w and u from hashes of the ids, so that no table is stored and any scale can be streamed. b
/// and the weight of the three sums are solved by the first generate() (about 0.1 s), for which
/// others wait, so that the mean of p is `base_rate` and the standard deviation of the logit is
/// `signal`.
///
/// All functions are thread-safe.
class SyntheticGenerator {
 public:
  /// Throws Error(kInvalidConfig).
  explicit SyntheticGenerator(const SyntheticConfig& config);
  ~SyntheticGenerator();
  SyntheticGenerator(const SyntheticGenerator&) = delete;
  SyntheticGenerator& operator=(const SyntheticGenerator&) = delete;

  const SyntheticConfig& config() const;

  /// Fills `block` with rows first_row .. first_row + num_rows - 1: numbers as counts before any
  /// transform (NaN where missing), labels 0 or 1. Rows beyond config().rows come from the end
  /// state of the drift. `probabilities`, if given, gets the true p of each row: [num_rows].
  void generate(std::int64_t first_row,
                std::int64_t num_rows,
                RowBlock& block,
                std::vector<float>* probabilities = nullptr) const;

  /// True if ids of feature f need more than 32 bits (16 hex digits in a Criteo file instead of 8).
  bool wide_ids(std::int64_t f) const;

 private:
  class Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace satrap::data
