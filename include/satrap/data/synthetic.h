#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "satrap/core/config.h"
#include "satrap/data/row_block.h"

namespace satrap::data {

/// Which click log the generator makes up: section `data.synthetic` of the configuration and the
/// options of `satrap data generate`. The defaults have the shape of Criteo Kaggle: 26 single ids
/// (cardinalities of the published set) and 13 counts.
///
/// Everything but `rows` and `eval_rows` decides what the *teacher* is, the rule that labels
/// follow; `rows` decides only how many rows there are and, with drift, how fast ids are replaced.
/// Training rows are 0 .. rows-1 and evaluation rows the eval_rows after them, so both have one
/// teacher.
struct SyntheticConfig {
  std::int64_t rows = 1'000'000;
  std::int64_t eval_rows = 100'000;
  std::int64_t seed = 1;
  std::vector<std::int64_t> cardinalities = {
      1460,  583,  10131227, 2202608, 305, 24,     12517,   633,   3,
      93145, 5683, 8351593,  3194,    27,  14992,  5461306, 10,    5652,
      2173,  4,    7046547,  18,      15,  286181, 105,     142572};
  double scale = 1.0;
  // Lists below hold one value per feature (or per numeric column), or one for all of them.
  std::vector<double> zipf = {};  // empty: 0.8 ... 1.1 spread over the features
  std::vector<std::int64_t> min_ids = {1};
  std::vector<std::int64_t> max_ids = {1};
  std::vector<double> empty_rate = {0.0};
  std::int64_t num_numeric = 13;
  std::vector<double> numeric_missing = {};  // empty: roughly Criteo Kaggle's
  double base_rate = 0.256;
  double signal = 1.5;
  std::int64_t interactions = 8;
  double interaction_share = 0.2;
  double numeric_share = 0.2;
  double drift = 0.0;
  double new_id_rate = 0.0;

  void visit(ConfigVisitor& v);

  /// Throws Error(kInvalidConfig) starting with `where` if fields contradict each other.
  void validate(const std::string& where) const;

  std::int64_t num_features() const { return static_cast<std::int64_t>(cardinalities.size()); }

  /// Number of ids feature f draws from: its cardinality times `scale`, at least 1.
  std::int64_t scaled_cardinality(std::int64_t f) const;
};

/// Generates rows of a made-up click log. Each row is a pure function of (config, row number): any
/// range can be generated alone, in any order, by any thread, with the same bits on every machine
/// (only IEEE add, multiply, divide and integers are used, no libm).
///
/// Ids: the rank of an id is Zipf distributed over exactly 1 .. cardinality (bounded, no folding of
/// the tail), then sent through a bijection, so that the id says nothing about the rank: onto 32
/// bits for features of up to 2^30 ids, onto 54 bits for larger ones. No two ids of a feature
/// merge.
///
/// Labels: Bernoulli(p) with
///   logit p = b + Σ w_f(id) + Σ over some pairs of features <u_f(id), u_g(id')> + Σ g_c(number c),
/// w and u drawn from hashes of the ids, so that no table is stored and any scale streams. b and
/// the weight of the three sums are solved when the generator is built (about 0.1 s) so that the
/// mean of p is `base_rate` and the standard deviation of the logit is `signal`.
///
/// Immutable: all functions are thread-safe.
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
  void generate(std::int64_t first_row, std::int64_t num_rows, RowBlock& block,
                std::vector<float>* probabilities = nullptr) const;

  /// True if ids of feature f need more than 32 bits (16 hex digits in a Criteo file instead of 8).
  bool wide_ids(std::int64_t f) const;

 private:
  class Impl;
  std::unique_ptr<const Impl> impl_;
};

/// How well the true probabilities predict the labels: no model can be better on average.
struct BestReachable {
  std::int64_t rows = 0;        // the sums below are over this many rows
  double base_rate = 0;         // mean label
  double auc = 0;               // of the true p against the labels; NaN with one class only
  double logloss = 0;           // of the true p against the labels
  double expected_auc = 0;      // the same over all labels that could have been drawn
  double expected_logloss = 0;  // mean entropy of Bernoulli(p)
};

/// Collects (p, label) of generated rows. One thread at a time.
class BestReachableMeter {
 public:
  /// AUC is taken over every `stride`-th row added, everything else over all rows.
  explicit BestReachableMeter(std::int64_t stride = 1) : stride_(stride) {}

  void add(const std::vector<float>& probabilities, const std::vector<float>& labels);
  BestReachable result() const;

 private:
  std::int64_t stride_;
  std::int64_t rows_ = 0;
  double sum_labels_ = 0, sum_logloss_ = 0, sum_entropy_ = 0;
  std::vector<float> kept_probabilities_, kept_labels_;
};

}  // namespace satrap::data
