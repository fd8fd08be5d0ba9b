#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "satrap/data/batch.h"

namespace satrap::trainer {

/// The mean of the values of one label, weighted: of 0 and 1 the share of positives. A missing one
/// does not count, nor does an example of weight 0.
struct MeanLabel {
  double sum = 0.0, weights = 0.0;

  /// NaN if nothing counts.
  double value() const {
    return weights > 0.0 ? sum / weights : std::numeric_limits<double>::quiet_NaN();
  }
};

/// Adds a batch to the means of its labels, [num_labels].
inline void add_labels(const data::Batch& batch, std::vector<MeanLabel>& means) {
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    if (std::isnan(batch.labels[i])) continue;
    const double weight =
        batch.weights.empty() ? 1.0 : static_cast<double>(batch.weights[i / means.size()]);
    MeanLabel& mean = means[i % means.size()];
    mean.weights += weight;
    mean.sum += weight * static_cast<double>(batch.labels[i]);
  }
}

}  // namespace satrap::trainer
