#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "satrap/data/row_block_source.h"
#include "satrap/data/schema.h"

namespace satrap::data {

/// The numeric transforms fitted on the training data. Part of the model: saved in the checkpoint,
/// the same for training, evaluation and prediction.
struct FittedTransforms {
  struct Scale {
    double mean = 0.0;
    double stddev = 1.0;
  };
  std::vector<Scale> scales;                    // [schema.numeric_inputs]; identity unless z-score
  std::vector<std::vector<double>> boundaries;  // [schema.bucketed], ascending, no duplicates

  /// JSON text by names of inputs and features, and back. from_json throws Error(kCorrupt) if the
  /// text is not what to_json wrote for a schema with these inputs.
  std::string to_json(const Schema& schema) const;
  static FittedTransforms from_json(const std::string& text, const Schema& schema);
};

/// The transforms of a schema that needs no data: explicit boundaries, no z-scores. Precondition:
/// !schema.needs_fit().
FittedTransforms fixed_transforms(const Schema& schema);

/// Makes one pass over `rows` (at most max_rows of them; 0: all). Means and deviations are exact,
/// without missing values; quantiles are those of a sample of up to 200,000 values per column,
/// drawn with `seed`. The result depends on the rows and the seed alone. Throws Error(kInvalidData)
/// if there are no rows, and what `after_block` throws.
FittedTransforms fit_transforms(const Schema& schema,
                                RowBlockSource& rows,
                                std::int64_t max_rows,
                                std::uint64_t seed,
                                const std::function<void()>& after_block = {});

/// The number of an input in a row of the block, before its transform; NaN: it is missing.
double number_of_row(const Schema::NumericInput& input, const RowBlock& block, std::int64_t row);

/// log(1 + |x|) with the sign of x.
double signed_log1p(double x);

}  // namespace satrap::data
