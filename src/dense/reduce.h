#pragma once

#include <cstdint>
#include <span>

#include "satrap/core/thread_pool.h"

namespace satrap::dense {

/// Values per unit of parallel work over the flat parameters, and per term of their sums.
inline constexpr std::int64_t kReduceChunk = 16384;

/// In double and in fixed order. The result is finite exactly if all values are.
double sum_of_squares(const float* values, std::int64_t size);

/// Likewise, the sums of chunks added in their order.
double sum_of_squares(std::span<const float> values, ThreadPool& pool);

/// The factor of torch.nn.utils.clip_grad_norm_ on a gradient; 1 without a limit (clip_norm 0).
float clipping_factor(std::span<const float> gradient, double clip_norm, ThreadPool& pool);

}  // namespace satrap::dense
