#pragma once

#include <span>
#include <vector>

#include "satrap/core/thread_pool.h"

namespace satrap::dense {

/// total[i] = parts[0][i] + parts[1][i] + ..., in this order; returns the sum of total[i]^2, in
/// double and in fixed order. Not finite exactly if some total is not.
double sum_parts(const std::vector<const float*>& parts, std::span<float> total, ThreadPool& pool);

double sum_of_squares(std::span<const float> values, ThreadPool& pool);

}  // namespace satrap::dense
