#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "satrap/core/config.h"

namespace satrap::data {

/// Settings of the generated click log: section `data.synthetic` of the configuration and the
/// options of `satrap data generate`. The defaults have the shape of Criteo Kaggle: 26 single ids
/// (cardinalities of the published set) and 13 counts.
///
/// Everything except `rows` and `eval_rows` defines the *teacher*, the rule that labels follow;
/// `rows` defines only the number of rows and, with drift, how fast ids are replaced. Training rows
/// are 0 .. rows-1 and evaluation rows the eval_rows after them, so both have the same teacher.
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
  friend bool operator==(const SyntheticConfig&, const SyntheticConfig&) = default;

  /// Throws Error(kInvalidConfig) starting with `where` if fields contradict each other.
  void validate(const std::string& where) const;

  /// The value for a column from a list of one value or of one per column.
  template <class T>
  static T per_column(const std::vector<T>& values, std::int64_t column) {
    return values.size() == 1 ? values.front() : values[static_cast<std::size_t>(column)];
  }

  std::int64_t num_features() const { return static_cast<std::int64_t>(cardinalities.size()); }

  /// Number of ids feature f draws from: its cardinality times `scale`, at least 1.
  std::int64_t scaled_cardinality(std::int64_t f) const;
};

}  // namespace satrap::data
