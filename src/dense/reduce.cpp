#include "src/dense/reduce.h"

#include <algorithm>
#include <cstdint>

namespace satrap::dense {
namespace {

constexpr std::int64_t kChunk = 16384;  // values per unit of parallel work

double sum_of_squares(const float* values, std::int64_t size) {
  constexpr std::int64_t kSums = 16;  // side by side, so that the loop vectorises
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

template <class Chunk>
double sum_over_chunks(std::int64_t size, ThreadPool& pool, const Chunk& chunk) {
  std::vector<double> sums(static_cast<std::size_t>((size + kChunk - 1) / kChunk));
  pool.parallel_for(std::ssize(sums), [&](std::int64_t i) {
    sums[static_cast<std::size_t>(i)] = chunk(i * kChunk, std::min(kChunk, size - i * kChunk));
  });
  double total = 0.0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace

double sum_parts(const std::vector<const float*>& parts, std::span<float> total, ThreadPool& pool) {
  return sum_over_chunks(std::ssize(total), pool, [&](std::int64_t first, std::int64_t count) {
    float* __restrict out = total.data() + first;
    std::copy_n(parts[0] + first, count, out);
    for (std::size_t p = 1; p < parts.size(); ++p) {
      const float* __restrict part = parts[p] + first;
      for (std::int64_t i = 0; i < count; ++i) out[i] += part[i];
    }
    return sum_of_squares(out, count);
  });
}

double sum_of_squares(std::span<const float> values, ThreadPool& pool) {
  return sum_over_chunks(std::ssize(values), pool, [&](std::int64_t first, std::int64_t count) {
    return sum_of_squares(values.data() + first, count);
  });
}

}  // namespace satrap::dense
