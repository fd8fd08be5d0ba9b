#include <algorithm>

#include "src/dense/ops.h"
#include "src/dense/simd.h"

namespace satrap::dense {
namespace {

// Calls visit(row, position, number) for every element, in order.
template <class Visit>
void for_each_element(ConstMatrix mask, const Visit& visit) {
  std::int64_t number = 0;
  for (std::int64_t r = 0; r < mask.rows; ++r) {
    const float* row = mask.row(r);
    for (std::int64_t i = 0; i < mask.cols; ++i) {
      if (row[i] != 0.0F) visit(r, i, number++);
    }
  }
}

}  // namespace

std::int64_t num_elements(ConstMatrix mask) {
  std::int64_t count = 0;
  for_each_element(mask, [&](std::int64_t, std::int64_t, std::int64_t) { ++count; });
  return count;
}

void attention_pairs(ConstMatrix query, ConstMatrix keys, ConstMatrix mask, Matrix pairs) {
  const std::int64_t width = query.cols;
  for_each_element(mask, [&](std::int64_t r, std::int64_t i, std::int64_t n) {
    const float* q = query.row(r);
    const float* k = keys.row(r) + i * width;
    float* __restrict out = pairs.row(n);
    std::copy_n(q, width, out);
    std::copy_n(k, width, out + width);
    for (std::int64_t c = 0; c < width; ++c) {
      out[2 * width + c] = q[c] - k[c];
      out[3 * width + c] = q[c] * k[c];
    }
  });
}

void attention_sum(ConstMatrix keys, ConstMatrix mask, ConstMatrix scores, Matrix y) {
  const std::int64_t width = y.cols;
  for (std::int64_t r = 0; r < y.rows; ++r) std::fill_n(y.row(r), width, 0.0F);
  for_each_element(mask, [&](std::int64_t r, std::int64_t i, std::int64_t n) {
    const float* k = keys.row(r) + i * width;
    const float score = *scores.row(n);
    float* __restrict out = y.row(r);
    for (std::int64_t c = 0; c < width; ++c) out[c] += score * k[c];
  });
}

void attention_sum_backward(ConstMatrix keys,
                            ConstMatrix mask,
                            ConstMatrix scores,
                            ConstMatrix dy,
                            Matrix dscores,
                            Matrix dkeys) {
  const std::int64_t width = dy.cols;
  for_each_element(mask, [&](std::int64_t r, std::int64_t i, std::int64_t n) {
    const float* d = dy.row(r);
    const float score = *scores.row(n);
    *dscores.row(n) = dot(d, keys.row(r) + i * width, width);
    float* __restrict dk = dkeys.row(r) + i * width;
    for (std::int64_t c = 0; c < width; ++c) dk[c] += score * d[c];
  });
}

void attention_pairs_backward(ConstMatrix query,
                              ConstMatrix keys,
                              ConstMatrix mask,
                              ConstMatrix dpairs,
                              Matrix dquery,
                              Matrix dkeys) {
  const std::int64_t width = query.cols;
  for_each_element(mask, [&](std::int64_t r, std::int64_t i, std::int64_t n) {
    const float* q = query.row(r);
    const float* k = keys.row(r) + i * width;
    const float* d = dpairs.row(n);
    float* __restrict dq = dquery.row(r);
    float* __restrict dk = dkeys.row(r) + i * width;
    for (std::int64_t c = 0; c < width; ++c) {
      const float difference = d[2 * width + c], product = d[3 * width + c];
      dq[c] += d[c] + difference + product * k[c];
      dk[c] += d[width + c] - difference + product * q[c];
    }
  });
}

}  // namespace satrap::dense
