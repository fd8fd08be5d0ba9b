#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "satrap/core/half.h"
#include "satrap/kernels/dims.h"
#include "satrap/kernels/sum_order.h"

namespace satrap {

/// Rows to gather: the weights of the row of id i are at rows[unique_of[i]] + weights_offset.
struct GatherSource {
  const std::byte* const* rows;   // [num_unique]
  std::int64_t weights_offset;    // bytes
  const std::int32_t* unique_of;  // [num_ids]
  const float* coefficient;       // [num_ids]
};

/// How many ids ahead rows are prefetched: as many as keep about twenty lines in flight.
template <class Dim>
constexpr std::int64_t gather_distance(Dim dim) {
  return std::clamp<std::int64_t>(1280 / (static_cast<std::int64_t>(dim) * 4 + kCacheLine), 2, 16);
}

/// out = Σ coefficient(i) * vector(i) for i in [begin, end), in order, by fused multiply-adds from
/// 0; zeros if there is none. Writes `out` once when the width is fixed: the sum stays in
/// registers.
template <class Dim, class Vector, class Coefficient>
inline void weighted_sum(std::int64_t begin,
                         std::int64_t end,
                         Vector&& vector,
                         Coefficient&& coefficient,
                         float* __restrict out,
                         Dim dim) {
  if constexpr (std::is_same_v<Dim, std::int64_t>) {
    for (std::int64_t d = 0; d < dim; ++d) out[d] = 0.0F;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto* __restrict v = vector(i);
      const float c = coefficient(i);
      for (std::int64_t d = 0; d < dim; ++d) out[d] = std::fma(c, to_float(v[d]), out[d]);
    }
  } else {
    float sum[dim];
    for (std::int64_t d = 0; d < dim; ++d) sum[d] = 0.0F;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto* v = vector(i);
      const float c = coefficient(i);
      for (std::int64_t d = 0; d < dim; ++d) sum[d] = std::fma(c, to_float(v[d]), sum[d]);
    }
    for (std::int64_t d = 0; d < dim; ++d) out[d] = sum[d];
  }
}

/// Pools consecutive bags of one feature: out[b] = Σ coefficient[i] * weights(i) over the ids i of
/// bag b, as weighted_sum. Weight: the stored type, see FloatType.
template <class Weight = float, class Dim>
inline void pool_bags(const GatherSource& source,
                      const std::int64_t* offsets,  // [num_bags + 1] into the ids
                      std::int64_t num_bags,
                      float* out,  // [num_bags] vectors of dim, out_stride floats apart
                      std::int64_t out_stride,
                      Dim dim) {
  const std::int64_t end = offsets[num_bags];
  const std::int64_t distance = gather_distance(dim);
  const std::int64_t row_bytes = static_cast<std::int64_t>(dim) * std::int64_t{sizeof(Weight)};
  const auto weights = [&](std::int64_t i) {
    return reinterpret_cast<const Weight*>(source.rows[source.unique_of[i]] +
                                           source.weights_offset);
  };
  for (std::int64_t i = offsets[0]; i < std::min(offsets[0] + distance, end); ++i) {
    prefetch_read(weights(i), row_bytes);
  }
  for (std::int64_t b = 0; b < num_bags; ++b) {
    weighted_sum(
        offsets[b], offsets[b + 1],
        [&](std::int64_t i) {
          // The address of the row is in memory too: prefetch it even earlier.
          const std::int64_t later = source.unique_of[std::min(i + 8 * distance, end - 1)];
          __builtin_prefetch(static_cast<const void*>(source.rows + later));
          if (i + distance < end) prefetch_read(weights(i + distance), row_bytes);
          return weights(i);
        },
        [&](std::int64_t i) { return source.coefficient[i]; }, out + b * out_stride, dim);
  }
}

/// out[i] = coefficient * weights of each of `num_ids` ids from `first_id` on: the elements of a
/// sequence, one vector after the other.
template <class Weight = float, class Dim>
inline void scale_rows(const GatherSource& source,
                       std::int64_t first_id,
                       std::int64_t num_ids,
                       float* __restrict out,  // [num_ids, dim]
                       Dim dim) {
  const std::int64_t end = first_id + num_ids;
  const std::int64_t distance = gather_distance(dim);
  const std::int64_t row_bytes = static_cast<std::int64_t>(dim) * std::int64_t{sizeof(Weight)};
  const auto weights = [&](std::int64_t i) {
    return reinterpret_cast<const Weight*>(source.rows[source.unique_of[i]] +
                                           source.weights_offset);
  };
  for (std::int64_t i = first_id; i < std::min(first_id + distance, end); ++i) {
    prefetch_read(weights(i), row_bytes);
  }
  for (std::int64_t i = first_id; i < end; ++i, out += dim) {
    if (i + distance < end) prefetch_read(weights(i + distance), row_bytes);
    const Weight* w = weights(i);
    const float c = source.coefficient[i];
    for (std::int64_t d = 0; d < dim; ++d) out[d] = std::fma(c, to_float(w[d]), 0.0F);
  }
}

/// The sequences of some consecutive examples: out[e] is the first max_length elements of example
/// e, then zeros.
template <class Weight = float, class Dim>
inline void pool_sequences(const GatherSource& source,
                           const std::int64_t* offsets,  // [num_examples + 1] into the ids
                           std::int64_t num_examples,
                           std::int64_t max_length,
                           float* out,  // [num_examples] times [max_length, dim]
                           std::int64_t out_stride,
                           Dim dim) {
  for (std::int64_t e = 0; e < num_examples; ++e) {
    const std::int64_t length = std::min(offsets[e + 1] - offsets[e], max_length);
    float* const to = out + e * out_stride;
    scale_rows<Weight>(source, offsets[e], length, to, dim);
    std::fill(to + length * dim, to + max_length * dim, 0.0F);
  }
}

/// Occurrences of keys in a batch, grouped by key, and the gradient of the batch.
struct Occurrences {
  const float* grad;            // of the pooled output
  const std::uint32_t* offset;  // [count] floats into grad
  const float* coefficient;     // [count]
  std::int64_t count;           // that may be prefetched
};

namespace detail {

template <class Dim>
inline void reduce_chunk(const Occurrences& from,
                         std::int64_t begin,
                         std::int64_t end,
                         float* __restrict out,
                         Dim dim) {
  const std::int64_t distance = gather_distance(dim);
  const std::int64_t row_bytes = static_cast<std::int64_t>(dim) * 4;
  weighted_sum(
      begin, end,
      [&](std::int64_t j) {
        const std::int64_t ahead = std::min(j + distance, from.count - 1);
        prefetch_read(from.grad + from.offset[ahead], row_bytes);
        return from.grad + from.offset[j];
      },
      [&](std::int64_t j) { return from.coefficient[j]; }, out, dim);
}

/// out = vectors 0 to count - 1, added in order; vector(i, to) writes one of them.
template <class Vector, class Dim>
inline void add_in_order(std::int64_t count, Vector&& vector, float* next, float* out, Dim dim) {
  vector(0, out);
  for (std::int64_t i = 1; i < count; ++i) {
    vector(i, next);
    for (std::int64_t d = 0; d < dim; ++d) out[d] += next[d];
  }
}

template <class Dim>
[[gnu::noinline]] void reduce_long_segment(const Occurrences& from,
                                           std::int64_t begin,
                                           std::int64_t end,
                                           float* out,
                                           float* scratch,
                                           Dim dim) {
  const std::int64_t num_chunks = (end - begin + kSumChunk - 1) / kSumChunk;
  const auto add_chunks = [&](std::int64_t first, std::int64_t count, float* to) {
    const auto chunk = [&](std::int64_t c, float* sum) {
      const std::int64_t at = begin + (first + c) * kSumChunk;
      reduce_chunk(from, at, std::min(at + kSumChunk, end), sum, dim);
    };
    add_in_order(count, chunk, scratch, to, dim);
  };
  if (num_chunks <= kSumChunk) return add_chunks(0, num_chunks, out);
  const auto group = [&](std::int64_t g, float* sum) {
    const std::int64_t first = g * kSumChunk;
    add_chunks(first, std::min(kSumChunk, num_chunks - first), sum);
  };
  add_in_order((num_chunks + kSumChunk - 1) / kSumChunk, group, scratch + dim, out, dim);
}

}  // namespace detail

/// The gradient of one row: out = Σ coefficient[j] * grad[offset[j] ...] over its occurrences j in
/// [begin, end), in the order of sum_order.h; zeros if there is none.
template <class Dim>
inline void reduce_segment(const Occurrences& from,
                           std::int64_t begin,
                           std::int64_t end,
                           float* out,      // [dim]
                           float* scratch,  // [2, dim]
                           Dim dim) {
  if (end - begin <= kSumChunk) {
    detail::reduce_chunk(from, begin, end, out, dim);
  } else {
    detail::reduce_long_segment(from, begin, end, out, scratch, dim);
  }
}

}  // namespace satrap
