#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "satrap/job/feature_spec.h"

namespace satrap::embedding {

/// The weight of each id of one bag in the pooled output (formulas: Pooling). Sums run in the order
/// of the bag.
inline void fill_coefficients(Pooling pooling,
                              const float* weights,  // [num_ids], or nullptr: all 1
                              std::int64_t num_ids,
                              float* coefficients) {  // [num_ids] out
  float scale = 1.0F;
  if (pooling == Pooling::kMean || pooling == Pooling::kSqrtN) {
    float sum = weights == nullptr ? static_cast<float>(num_ids) : 0.0F;
    if (weights != nullptr) {
      for (std::int64_t i = 0; i < num_ids; ++i) {
        sum += pooling == Pooling::kMean ? weights[i] : weights[i] * weights[i];
      }
    }
    const float divisor = pooling == Pooling::kMean ? sum : std::sqrt(sum);
    scale = divisor == 0.0F ? 0.0F : 1.0F / divisor;
  }
  if (weights == nullptr) {
    std::fill_n(coefficients, num_ids, scale);
  } else {
    for (std::int64_t i = 0; i < num_ids; ++i) coefficients[i] = weights[i] * scale;
  }
}

}  // namespace satrap::embedding
