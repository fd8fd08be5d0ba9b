#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "satrap/data/batch.h"

namespace satrap::trainer {

/// The share of positives among the values of one label, weighted. A missing one does not count,
/// nor does an example of weight 0.
struct PositiveShare {
  double positives = 0.0, all = 0.0;

  /// NaN if nothing counts.
  double value() const {
    return all > 0.0 ? positives / all : std::numeric_limits<double>::quiet_NaN();
  }
};

/// Adds a batch to the shares of its labels, [num_labels].
inline void add_labels(const data::Batch& batch, std::vector<PositiveShare>& shares) {
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    if (std::isnan(batch.labels[i])) continue;
    const double weight =
        batch.weights.empty() ? 1.0 : static_cast<double>(batch.weights[i / shares.size()]);
    PositiveShare& share = shares[i % shares.size()];
    share.all += weight;
    share.positives += batch.labels[i] > 0.5F ? weight : 0.0;
  }
}

}  // namespace satrap::trainer
