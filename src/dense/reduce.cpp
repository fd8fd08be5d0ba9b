#include "src/dense/reduce.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace satrap::dense {
double sum_of_squares(const float* values, std::int64_t size) {
  constexpr std::int64_t kSums = 16;  // independent, so that the loop vectorises
  double sums[kSums] = {};
  std::int64_t i = 0;
  for (; i + kSums <= size; i += kSums) {
    for (std::int64_t l = 0; l < kSums; ++l) {
      const double v = static_cast<double>(values[i + l]);
      sums[l] += v * v;
    }
  }
  for (; i < size; ++i) {
    sums[i % kSums] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  double total = 0.0;
  for (const double sum : sums) total += sum;
  return total;
}

double sum_of_squares(std::span<const float> values, ThreadPool& pool) {
  const std::int64_t size = std::ssize(values);
  std::vector<double> sums(static_cast<std::size_t>((size + kReduceChunk - 1) / kReduceChunk));
  pool.parallel_for(std::ssize(sums), [&](std::int64_t i) {
    sums[static_cast<std::size_t>(i)] = sum_of_squares(
        values.data() + i * kReduceChunk, std::min(kReduceChunk, size - i * kReduceChunk));
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

float clipping_factor(std::span<const float> gradient, double clip_norm, ThreadPool& pool) {
  if (clip_norm <= 0.0) return 1.0F;
  const double norm = std::sqrt(sum_of_squares(gradient, pool));
  return static_cast<float>(std::min(1.0, clip_norm / (norm + 1e-6)));
}

}  // namespace satrap::dense
